"""Labelling sources: what looks at text and votes."""

from tagweave.sources.base import Source, Vote, Votes, groups, tokens_at
from tagweave.sources.functions import labeling_function
from tagweave.sources.loading import create_source, load_sources
from tagweave.sources.outside import OutsideWords, PartsOfSpeech, Punctuation, StopWords
from tagweave.sources.patterns import Regex

SOURCES: dict[str, type[Source]] = {
    source.kind: source
    for source in (
        OutsideWords,
        PartsOfSpeech,
        Punctuation,
        Regex,
        StopWords,
    )
}
"""Every kind of source by the name that files of sources use."""

__all__ = [
    "SOURCES",
    "OutsideWords",
    "PartsOfSpeech",
    "Punctuation",
    "Regex",
    "Source",
    "StopWords",
    "Vote",
    "Votes",
    "create_source",
    "groups",
    "labeling_function",
    "load_sources",
    "tokens_at",
]
