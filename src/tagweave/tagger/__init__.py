"""Token classifiers that learn from soft labels."""

from collections.abc import Mapping
from typing import Any

from tagweave.config import create
from tagweave.errors import unknown_name
from tagweave.tagger.autoner import AutoNER
from tagweave.tagger.bond import BOND
from tagweave.tagger.model import Epoch, Tagger
from tagweave.tagger.states import forget

TAGGERS: dict[str, type[Tagger]] = {tagger.name: tagger for tagger in (Tagger, AutoNER, BOND)}
"""Every tagger by the name that the command line knows."""

__all__ = ["BOND", "TAGGERS", "AutoNER", "Epoch", "Tagger", "create_tagger", "forget"]


def create_tagger(name: str, settings: Mapping[str, Any] | None = None) -> Tagger:
    """A tagger by name.

    Raises:
        UsageError: there is no such tagger, or no such setting of it; the message has the nearest name.

    >>> create_tagger("bert", {"epochs": 5}).epochs
    5
    """
    if name not in TAGGERS:
        raise unknown_name("tagger", name, TAGGERS)
    return create(TAGGERS[name], settings or {})
