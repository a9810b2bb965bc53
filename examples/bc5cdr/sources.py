"""Sources for BC5CDR after Safranchik et al. (2020), from raw text and two lists of phrases.

The lists of AutoNER are read from `$TAGWEAVE_DATA/raw/dictionaries`: `core` are names of chemicals and diseases, `full`
are phrases of the field whose types are not known. The names of the sources are those of the paper. Four of its sources
need UMLS, which is not free, and are missing: Organic Chemical, Antibiotic, Element, and Disease or Syndrome. The list
of parts of the body is our own.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from tagweave.corpus import Document
from tagweave.sources import (
    Abbreviations,
    Affixes,
    Dictionary,
    HeadNouns,
    HyphenLinks,
    LinkedSpans,
    OutsideWords,
    PartsOfSpeech,
    PhraseLinks,
    PossessiveLinks,
    Punctuation,
    Regex,
    StopWords,
    labeling_function,
)
from tagweave.sources.base import Vote

DICTIONARIES = Path(os.environ["TAGWEAVE_DATA"]) / "raw" / "dictionaries"
CORE = (DICTIONARIES / "bc5cdr-core.tsv.gz",)
HERE = Path(__file__).parent
BODY_PARTS = frozenset((HERE.parent / "ncbi_disease" / "body_parts.txt").read_text(encoding="utf-8").split("\n")[:-1])
AILMENTS = frozenset(("cancer", "cancers", "damage", "disease", "diseases", "pain", "injury", "injuries"))
TYPES = ("Chemical", "Disease")
PIPELINE = "en_core_web_sm"


def core(type: str) -> list[Dictionary]:
    """The names of one type: longer ones in any case or number, short ones exactly."""
    lenient = {"case": "ignore", "lemma": True, "min_length": 4, "join": True, "pipeline": PIPELINE}
    return [
        Dictionary(f"tag-DictCore-{type}", CORE, type=type, **lenient),
        Dictionary(f"tag-DictCore-{type}-Exact", CORE, type=type, max_length=3),
    ]


@labeling_function("Disease", name="tag-BodyTerms")
def body_terms(document: Document) -> Iterator[Vote]:
    """A part of the body before cancer, disease, pain, damage or injury."""
    words = [token.lower() for token in document.tokens]
    for place in range(1, len(words)):
        if words[place] in AILMENTS:
            start = next((s for s in (place - 2, place - 1) if s >= 0 and " ".join(words[s:place]) in BODY_PARTS), None)
            if start is not None:
                yield start, place + 1


@labeling_function("Chemical", name="tag-Induced")
def induced(document: Document) -> Iterator[Vote]:
    """What induces something: X in X-induced."""
    tokens = document.tokens
    for place in range(2, len(tokens)):
        if tokens[place].lower().startswith("induc") and tokens[place - 1] == "-":
            yield place - 2, place - 1


SUFFIXES = ("agia", "cardia", "trophy", "itis", "emia", "enia", "pathy", "plasia", "lism", "osis")
GREEK = "alpha|beta|gamma|delta|epsilon|kappa|lambda|sigma|omega"

dictionaries = [*core("Chemical"), *core("Disease")]
tagging = [
    *dictionaries,
    body_terms,
    *(
        HeadNouns(f"tag-{head.title()}", "Disease", (head,))
        for head in ("damage", "disease", "disorder", "lesion", "syndrome")
    ),
    Affixes(
        "tag-ChemicalSuffixes",
        "Chemical",
        suffixes=("ine", "ole", "ol", "ide", "ium", "epam"),
        exceptions=(
            "determine",
            "baseline",
            "examine",
            "combine",
            "medicine",
            "routine",
            "control",
            "protocol",
            "alcohol",
        )
        + ("decline", "whole", "outline", "machine", "discipline", "sodium", "genuine", "suicide", "outside", "inside")
        + ("provide", "guideline", "bedside", "worldwide", "define", "imagine", "intestine", "urine", "feminine"),
        min_length=7,
        form="lemma",
        parts_of_speech=("NOUN", "PROPN"),
        join=False,
        pipeline=PIPELINE,
    ),
    Affixes(
        "tag-CancerLike",
        "Disease",
        suffixes=("edema", "toma", "coma", "noma", "edemas", "tomas", "comas", "nomas"),
        join=False,
    ),
    Affixes(
        "tag-DiseaseSuffixes", "Disease", suffixes=SUFFIXES, min_length=5, form="lemma", join=False, pipeline=PIPELINE
    ),
    Affixes(
        "tag-DiseasePrefixes",
        "Disease",
        prefixes=("hyper", "hypo"),
        parts_of_speech=("NOUN",),
        join=False,
        pipeline=PIPELINE,
    ),
    induced,
    Regex("tag-Vitamin", r"\b[Vv]itamin [A-Z]\d{0,2}\b", "Chemical", alignment="expand"),
    Regex("tag-Acid", r"\b\w+ic acid\b", "Chemical", flags=("ignorecase",)),
]
acronyms = Abbreviations("tag-Acronyms", tuple(source.name for source in tagging), TYPES)
outside = [
    PartsOfSpeech("tag-OtherPOS", ("ADP", "ADV", "DET", "VERB")),
    StopWords("tag-StopWords"),
    OutsideWords(
        "tag-CommonOther",
        ("patient", "study", "case", "treatment", "effect", "dose", "group", "result", "day", "month", "year", "rat")
        + (
            "mouse",
            "therapy",
            "administration",
            "level",
            "increase",
            "decrease",
            "model",
            "drug",
            "response",
            "report",
        ),
        form="lemma",
    ),
    Punctuation("tag-Punctuation", besides=("-",)),
]
linking = [
    PossessiveLinks("PossessivePhrase"),
    HyphenLinks("HyphenatedPrefix", short_prefix=True),
    HyphenLinks("PostHyphen", after_only=True),
    PhraseLinks("ExtractedPhrase", (DICTIONARIES / "bc5cdr-full.tsv.gz",)),
]
voting = tuple(source.name for source in (*tagging, acronyms))
linked = [LinkedSpans(f"link-{rule.name}", rule.name, TYPES, voting) for rule in linking]

SOURCES = [*tagging, acronyms, *outside, *linking, *linked]
