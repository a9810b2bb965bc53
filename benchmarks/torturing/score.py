"""How often something was tried, and how often it went well."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Score:
    """One line of the scoreboard.

    Attributes:
        what: what was done.
        tried: how often.
        well: how often it ended as it must.
        faults: how it ended elsewhere.
        notes: how often it ended in which good way.
        minutes: after which no more is tried.
    """

    what: str
    tried: int = 0
    well: int = 0
    faults: list[str] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    minutes: float = math.inf
    _begin: float = field(default_factory=time.monotonic)

    @property
    def over(self) -> bool:
        """Whether there is no time to try more; something is tried in any case."""
        return self.tried > 0 and time.monotonic() - self._begin > 60 * self.minutes

    def good(self, how: str = "") -> None:
        """It ended as it must."""
        self.tried += 1
        self.well += 1
        if how:
            self.notes[how] = self.notes.get(how, 0) + 1

    def fault(self, how: str, say: Callable[[str], None] = print) -> None:
        """It ended as it must not."""
        self.tried += 1
        self.faults.append(how)
        say(f"FAULT {self.what}: {how}")
