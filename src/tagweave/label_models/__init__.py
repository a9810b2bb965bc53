"""Label models: denoisers of the votes of many sources, under one contract (`base.LabelModel`)."""

from tagweave.label_models.base import LabelModel
from tagweave.label_models.best_consensus import BestConsensus
from tagweave.label_models.majority_vote import MajorityVote
from tagweave.label_models.span_vote import SpanVote

LABEL_MODELS: dict[str, type[LabelModel]] = {model.name: model for model in (BestConsensus, MajorityVote, SpanVote)}
"""Every label model by the name that the command line knows."""

__all__ = ["LABEL_MODELS", "BestConsensus", "LabelModel", "MajorityVote", "SpanVote"]
