"""Labelling sources: what looks at text and votes."""

from tagweave.sources.abbreviations import Abbreviations
from tagweave.sources.affixes import Affixes
from tagweave.sources.base import Source, Vote, Votes, groups, tokens_at
from tagweave.sources.callables import CallableSource, PredictEntities
from tagweave.sources.dates import Dates
from tagweave.sources.dictionary import Dictionary
from tagweave.sources.document_level import DocumentHistory, DocumentMajority, Voter
from tagweave.sources.functions import labeling_function
from tagweave.sources.heads import HeadNouns
from tagweave.sources.language_model import LanguageModel
from tagweave.sources.links import (
    BigramLinks,
    CapitalLinks,
    DependencyLinks,
    EmbeddingLinks,
    HyphenLinks,
    LinkedSpans,
    PhraseLinks,
    PossessiveLinks,
)
from tagweave.sources.loading import create_source, load_sources
from tagweave.sources.names import FullNames, NameEndings, ProperNames
from tagweave.sources.numbers import Money, Numbers
from tagweave.sources.outside import OutsideWords, PartsOfSpeech, Punctuation, StopWords
from tagweave.sources.patterns import Regex
from tagweave.sources.spacy_model import SpacyModel
from tagweave.sources.span_file import SpanFile
from tagweave.sources.token_patterns import TokenPatterns
from tagweave.sources.transformers_model import TransformersModel
from tagweave.sources.triggers import Triggers
from tagweave.sources.truecasing import Truecased
from tagweave.sources.wrappers import Corrected, Exclusive, Renamed, Specified, TokenCount

SOURCES: dict[str, type[Source]] = {
    source.kind: source
    for source in (
        Abbreviations,
        Affixes,
        BigramLinks,
        CapitalLinks,
        Corrected,
        Dates,
        DependencyLinks,
        Dictionary,
        DocumentHistory,
        DocumentMajority,
        EmbeddingLinks,
        Exclusive,
        FullNames,
        HeadNouns,
        HyphenLinks,
        LanguageModel,
        LinkedSpans,
        Money,
        NameEndings,
        Numbers,
        OutsideWords,
        PartsOfSpeech,
        PhraseLinks,
        PossessiveLinks,
        ProperNames,
        Punctuation,
        Regex,
        Renamed,
        SpacyModel,
        SpanFile,
        Specified,
        StopWords,
        TokenCount,
        TokenPatterns,
        TransformersModel,
        Triggers,
        Voter,
    )
}
"""Every kind of source by the name that files of sources use."""

__all__ = [
    "SOURCES",
    "Abbreviations",
    "Affixes",
    "BigramLinks",
    "CallableSource",
    "CapitalLinks",
    "Corrected",
    "Dates",
    "DependencyLinks",
    "Dictionary",
    "DocumentHistory",
    "DocumentMajority",
    "EmbeddingLinks",
    "Exclusive",
    "FullNames",
    "HeadNouns",
    "HyphenLinks",
    "LanguageModel",
    "LinkedSpans",
    "Money",
    "NameEndings",
    "Numbers",
    "OutsideWords",
    "PartsOfSpeech",
    "PhraseLinks",
    "PossessiveLinks",
    "PredictEntities",
    "ProperNames",
    "Punctuation",
    "Regex",
    "Renamed",
    "Source",
    "SpacyModel",
    "SpanFile",
    "Specified",
    "StopWords",
    "TokenCount",
    "TokenPatterns",
    "TransformersModel",
    "Triggers",
    "Truecased",
    "Vote",
    "Voter",
    "Votes",
    "create_source",
    "groups",
    "labeling_function",
    "load_sources",
    "tokens_at",
]
