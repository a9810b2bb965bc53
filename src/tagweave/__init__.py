"""tagweave: many noisy taggers in, one accurate named-entity recogniser out.

Everything public is here; a name is loaded when it is first used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tagweave.alternate import AlternateTraining, Round
    from tagweave.analysis import Analysis, analyze, with_gold
    from tagweave.annotating import annotate
    from tagweave.annotations import Annotations, Span
    from tagweave.comparison import compare
    from tagweave.corpus import Corpus, CorpusBuilder, Document
    from tagweave.encoder.embeddings import embed
    from tagweave.errors import (
        AlignmentError,
        DataError,
        FormatError,
        LabelError,
        MissingExtraError,
        NotFittedError,
        ShardError,
        SourceError,
        StorageError,
        TagweaveError,
        TagweaveWarning,
        TrainingError,
        UsageError,
    )
    from tagweave.evaluation import Scores, evaluate, score_tags
    from tagweave.formats import read, read_batches, write, write_batches
    from tagweave.label_models import (
        HMM,
        BestConsensus,
        ConditionalHMM,
        DawidSkene,
        LabelModel,
        LinkedHMM,
        MajorityVote,
        MatrixCompletion,
        NaiveBayes,
        SpanVote,
        SwellShark,
        WeightedVote,
        links_from_sources,
    )
    from tagweave.labels import LabelSet
    from tagweave.observations import Observations, observe
    from tagweave.report import Table
    from tagweave.shards import map_shards
    from tagweave.soft_labels import SoftLabels
    from tagweave.sources import Source, labeling_function, load_sources
    from tagweave.stored import StoredCorpus
    from tagweave.tagger import BOND, AutoNER, Tagger

__version__ = "0.1.0"

_MODULE_OF = {
    "AlignmentError": "errors",
    "AlternateTraining": "alternate",
    "Analysis": "analysis",
    "Annotations": "annotations",
    "AutoNER": "tagger",
    "BOND": "tagger",
    "BestConsensus": "label_models",
    "ConditionalHMM": "label_models",
    "Corpus": "corpus",
    "CorpusBuilder": "corpus",
    "DataError": "errors",
    "DawidSkene": "label_models",
    "Document": "corpus",
    "FormatError": "errors",
    "HMM": "label_models",
    "LabelError": "errors",
    "LabelModel": "label_models",
    "LabelSet": "labels",
    "LinkedHMM": "label_models",
    "MajorityVote": "label_models",
    "MatrixCompletion": "label_models",
    "MissingExtraError": "errors",
    "NaiveBayes": "label_models",
    "NotFittedError": "errors",
    "Observations": "observations",
    "Round": "alternate",
    "Scores": "evaluation",
    "ShardError": "errors",
    "SoftLabels": "soft_labels",
    "Source": "sources",
    "SourceError": "errors",
    "Span": "annotations",
    "SpanVote": "label_models",
    "StorageError": "errors",
    "StoredCorpus": "stored",
    "SwellShark": "label_models",
    "Table": "report",
    "Tagger": "tagger",
    "TagweaveError": "errors",
    "TagweaveWarning": "errors",
    "TrainingError": "errors",
    "UsageError": "errors",
    "WeightedVote": "label_models",
    "analyze": "analysis",
    "annotate": "annotating",
    "compare": "comparison",
    "embed": "encoder.embeddings",
    "evaluate": "evaluation",
    "labeling_function": "sources",
    "links_from_sources": "label_models",
    "load_sources": "sources",
    "map_shards": "shards",
    "observe": "observations",
    "read": "formats",
    "read_batches": "formats",
    "score_tags": "evaluation",
    "with_gold": "analysis",
    "write": "formats",
    "write_batches": "formats",
}

__all__ = [  # sorted as strings, capitals first
    "AlignmentError",
    "AlternateTraining",
    "Analysis",
    "Annotations",
    "AutoNER",
    "BOND",
    "BestConsensus",
    "ConditionalHMM",
    "Corpus",
    "CorpusBuilder",
    "DataError",
    "DawidSkene",
    "Document",
    "FormatError",
    "HMM",
    "LabelError",
    "LabelModel",
    "LabelSet",
    "LinkedHMM",
    "MajorityVote",
    "MatrixCompletion",
    "MissingExtraError",
    "NaiveBayes",
    "NotFittedError",
    "Observations",
    "Round",
    "Scores",
    "ShardError",
    "SoftLabels",
    "Source",
    "SourceError",
    "Span",
    "SpanVote",
    "StorageError",
    "StoredCorpus",
    "SwellShark",
    "Table",
    "Tagger",
    "TagweaveError",
    "TagweaveWarning",
    "TrainingError",
    "UsageError",
    "WeightedVote",
    "__version__",
    "analyze",
    "annotate",
    "compare",
    "embed",
    "evaluate",
    "labeling_function",
    "links_from_sources",
    "load_sources",
    "map_shards",
    "observe",
    "read",
    "read_batches",
    "score_tags",
    "with_gold",
    "write",
    "write_batches",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tagweave' has no attribute {name!r}")
    value = getattr(import_module(f"tagweave.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
