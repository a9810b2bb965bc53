"""What a hostile case is: something that a command is given, and how the command must end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Ends = Literal["refused", "repaired", "fine", "cleanly"]
"""`refused`: an error that names the file, no output. `repaired`: a warning, and output. `fine`: output without a
warning. `cleanly`: any of these, for damage that may by chance leave something readable."""


@dataclass(frozen=True)
class Case:
    """One file or folder of documents.

    Attributes:
        path: where it is.
        ends: how reading it must end.
        says: pattern of what the message must hold beside the name of the file, such as the line.
        format: format to read it in, None goes by the name.
        options: options of reading, `key=value`.
        named: what an error must name, None for the name of the file.
    """

    path: Path
    ends: Ends = "refused"
    says: str = ""
    format: str | None = None
    options: tuple[str, ...] = ()
    named: str | None = None

    @property
    def name(self) -> str:
        """What an error must name."""
        return self.path.name if self.named is None else self.named


@dataclass(frozen=True)
class Command:
    """Something that is no documents: a file of sources, a list of phrases, a model, a plan, or settings.

    Attributes:
        name: what it is called in the list of cases.
        arguments: the whole command line.
        ends: how it must end.
        says: pattern of what the message must hold.
    """

    name: str
    arguments: tuple[str, ...]
    ends: Ends = "refused"
    says: str = ""
