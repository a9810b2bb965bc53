"""What each source of a corpus is worth, with gold or without."""

from tagweave.analysis.analysis import Analysis, analyze
from tagweave.analysis.disagreements import Disagreement
from tagweave.analysis.gold import with_gold

__all__ = ["Analysis", "Disagreement", "analyze", "with_gold"]
