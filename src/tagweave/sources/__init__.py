"""Labelling sources: what looks at text and votes."""

from tagweave.sources.abbreviations import Abbreviations
from tagweave.sources.affixes import Affixes
from tagweave.sources.base import Source, Vote, Votes, groups, tokens_at
from tagweave.sources.functions import labeling_function
from tagweave.sources.heads import HeadNouns
from tagweave.sources.loading import create_source, load_sources
from tagweave.sources.outside import OutsideWords, PartsOfSpeech, Punctuation, StopWords
from tagweave.sources.patterns import Regex
from tagweave.sources.token_patterns import TokenPatterns
from tagweave.sources.triggers import Triggers

SOURCES: dict[str, type[Source]] = {
    source.kind: source
    for source in (
        Abbreviations,
        Affixes,
        HeadNouns,
        OutsideWords,
        PartsOfSpeech,
        Punctuation,
        Regex,
        StopWords,
        TokenPatterns,
        Triggers,
    )
}
"""Every kind of source by the name that files of sources use."""

__all__ = [
    "SOURCES",
    "Abbreviations",
    "Affixes",
    "HeadNouns",
    "OutsideWords",
    "PartsOfSpeech",
    "Punctuation",
    "Regex",
    "Source",
    "StopWords",
    "TokenPatterns",
    "Triggers",
    "Vote",
    "Votes",
    "create_source",
    "groups",
    "labeling_function",
    "load_sources",
    "tokens_at",
]
