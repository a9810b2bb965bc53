"""Entity scores: predicted spans against gold spans.

A predicted entity is correct when a gold entity of the same document has the same first token, the same end and the
same type (strict matching). Everything else stands beside that score: averages over types, a bootstrap interval, the
four relaxed schemes of SemEval, and coverage. A signature says how a score was computed.

`evaluate` compares two corpora, `evaluate_files` two files, `score_tags` two lists of tag sequences, `source_scores`
each source of a corpus with its gold.
"""

from tagweave.evaluation.files import evaluate_files
from tagweave.evaluation.matching import Matching, relaxed_matching
from tagweave.evaluation.scores import Coverage, Interval, Score, Scores
from tagweave.evaluation.scoring import evaluate
from tagweave.evaluation.source_scores import score_of, source_counts, source_scores, source_table, span_column
from tagweave.evaluation.tag_scores import score_tags

__all__ = [
    "Coverage",
    "Interval",
    "Matching",
    "Score",
    "Scores",
    "evaluate",
    "evaluate_files",
    "relaxed_matching",
    "score_of",
    "score_tags",
    "source_counts",
    "source_scores",
    "source_table",
    "span_column",
]
