"""Labelling sources: what looks at text and votes."""

from tagweave.sources.base import Source, Vote, Votes, groups, tokens_at
from tagweave.sources.functions import labeling_function

__all__ = ["Source", "Vote", "Votes", "groups", "labeling_function", "tokens_at"]
