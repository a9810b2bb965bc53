"""Label models that are fitted step by step, as by expectation maximisation: when they stop."""

from abc import ABC
from dataclasses import dataclass

from tagweave.label_models.base import LabelModel


@dataclass(kw_only=True)
class IterativeModel(LabelModel, ABC):
    """A label model that is fitted step by step; each step notes its `objective` in `history_`, which never falls.

    Attributes:
        iterations: most iterations.
        tolerance: relative gain of the objective under which it stops.
    """

    iterations: int = 50
    tolerance: float = 1e-6

    @property
    def converged(self) -> bool:
        """Whether the last two iterations of the fit were as good as each other; else `iterations` was the limit."""
        if len(self.history_) < 2:
            return False
        before, now = (record["objective"] for record in self.history_[-2:])
        return now - before < self.tolerance * abs(before)
