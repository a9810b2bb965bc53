"""Alternate training: a label model and a tagger teach each other."""

from tagweave.alternate.rounds import OUTPUTS, TAGGER_SOURCE, Outcome, Output, Round, best_round
from tagweave.alternate.running import is_alternate, load_round
from tagweave.alternate.training import AlternateTraining

__all__ = [
    "OUTPUTS",
    "TAGGER_SOURCE",
    "AlternateTraining",
    "Outcome",
    "Output",
    "Round",
    "best_round",
    "is_alternate",
    "load_round",
]
