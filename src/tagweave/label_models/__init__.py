"""Label models: denoisers of the votes of many sources, under one contract (`base.LabelModel`)."""

from collections.abc import Mapping
from typing import Any

from tagweave.config import create
from tagweave.errors import unknown_name
from tagweave.label_models.base import LabelModel
from tagweave.label_models.best_consensus import BestConsensus
from tagweave.label_models.conditional_hmm import ConditionalHMM, ConditionalIID
from tagweave.label_models.dawid_skene import DawidSkene
from tagweave.label_models.hmm import HMM
from tagweave.label_models.linked_hmm import LinkedHMM
from tagweave.label_models.links import links_from_sources
from tagweave.label_models.majority_vote import MajorityVote
from tagweave.label_models.matrix_completion import MatrixCompletion
from tagweave.label_models.naive_bayes import NaiveBayes
from tagweave.label_models.span_vote import SpanVote
from tagweave.label_models.swellshark import SwellShark
from tagweave.label_models.weighted_vote import WeightedVote

LABEL_MODELS: dict[str, type[LabelModel]] = {
    model.name: model
    for model in (
        BestConsensus,
        ConditionalHMM,
        ConditionalIID,
        DawidSkene,
        HMM,
        LinkedHMM,
        MajorityVote,
        MatrixCompletion,
        NaiveBayes,
        SpanVote,
        SwellShark,
        WeightedVote,
    )
}
"""Every label model by the name that the command line knows."""

__all__ = [
    "HMM",
    "LABEL_MODELS",
    "BestConsensus",
    "ConditionalHMM",
    "ConditionalIID",
    "DawidSkene",
    "LabelModel",
    "LinkedHMM",
    "MajorityVote",
    "MatrixCompletion",
    "NaiveBayes",
    "SpanVote",
    "SwellShark",
    "WeightedVote",
    "create_label_model",
    "links_from_sources",
]


def create_label_model(name: str, settings: Mapping[str, Any] | None = None) -> LabelModel:
    """A label model by name.

    Raises:
        UsageError: there is no such model, or no such setting of it; the message has the nearest name.

    >>> create_label_model("majority-vote", {"state_space": "bio"}).state_space
    'bio'
    """
    if name not in LABEL_MODELS:
        raise unknown_name("label model", name, LABEL_MODELS)
    return create(LABEL_MODELS[name], settings or {})
