"""Sources for NCBI-Disease after Safranchik et al. (2020), from raw text and two lists of phrases.

The lists of AutoNER are read from `$TAGWEAVE_DATA/raw/dictionaries`: `core` are names of diseases, `full` are phrases
of the field whose types are not known. The names of the sources are those of the paper. UMLS, from which the paper
takes parts of the body, is replaced by the list in `body_parts.txt`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from tagweave.corpus import Document
from tagweave.sources import (
    Affixes,
    BigramLinks,
    Dictionary,
    EmbeddingLinks,
    HeadNouns,
    HyphenLinks,
    LinkedSpans,
    PartsOfSpeech,
    PhraseLinks,
    PossessiveLinks,
    Punctuation,
    StopWords,
    labeling_function,
)
from tagweave.sources.base import Vote

DICTIONARIES = Path(os.environ["TAGWEAVE_DATA"]) / "raw" / "dictionaries"
CORE = (DICTIONARIES / "ncbi-disease-core.tsv.gz",)
BODY_PARTS = frozenset((Path(__file__).parent / "body_parts.txt").read_text(encoding="utf-8").split("\n")[:-1])
AILMENTS = frozenset(("cancer", "cancers", "damage", "disease", "diseases", "pain", "injury", "injuries"))
TYPES = ("Disease",)
PIPELINE = "en_core_web_sm"

# Occurrences side by side are one entity, because the tags of the paper do not tell where the next one begins.
LENIENT = {"case": "ignore", "lemma": True, "min_length": 4, "join": True, "pipeline": PIPELINE}
core = Dictionary("core", CORE, type="Disease", hidden=True, **LENIENT)


@labeling_function("Disease", name="tag-CoreDictionaryUncased")
def core_uncased(document: Document) -> Iterator[Vote]:
    """Names of diseases in any case or number, with inherited or hereditary before them."""
    for start, end, *_ in document.sources["core"] or ():
        inherited = start > 0 and document.tokens[start - 1].lower() in {"inherited", "hereditary"}
        yield start - inherited, end


@labeling_function("Disease", name="tag-BodyTerms")
def body_terms(document: Document) -> Iterator[Vote]:
    """A part of the body before cancer, disease, pain, damage or injury."""
    words = [token.lower() for token in document.tokens]
    for place in range(1, len(words)):
        if words[place] in AILMENTS:
            start = next((s for s in (place - 2, place - 1) if s >= 0 and " ".join(words[s:place]) in BODY_PARTS), None)
            if start is not None:
                yield start, place + 1


tagging = [
    core_uncased,
    Dictionary("tag-CoreDictionaryExact", CORE, type="Disease", max_length=3, exclude=("WT1", "VHL")),
    Affixes(
        "tag-CancerLike",
        "Disease",
        suffixes=("edema", "toma", "coma", "noma", "edemas", "tomas", "comas", "nomas"),
        join=False,
    ),
    Affixes(
        "tag-CommonSuffixes",
        "Disease",
        suffixes=("agia", "cardia", "trophy", "toxic", "itis", "emia", "pathy", "plasia"),
        form="lemma",
        join=False,
        pipeline=PIPELINE,
    ),
    *(
        HeadNouns(f"tag-{head.title()}", "Disease", (head,))
        for head in ("deficiency", "disorder", "lesion", "syndrome")
    ),
    body_terms,
]
outside = [
    PartsOfSpeech("tag-OtherPOS", ("ADP", "ADV", "DET", "VERB")),
    StopWords("tag-StopWords"),
    Punctuation("tag-Punctuation", besides=("-",)),
]
linking = [
    PossessiveLinks("PossessivePhrase"),
    HyphenLinks("HyphenatedPhrase"),
    EmbeddingLinks("EmbeddingLinks", threshold=0.9),
    BigramLinks("CommonBigram", min_count=6),
    PhraseLinks("ExtractedPhrase", (DICTIONARIES / "ncbi-disease-full.tsv.gz",)),
]
linked = [
    LinkedSpans(f"link-{rule.name}", rule.name, TYPES, tuple(source.name for source in tagging)) for rule in linking
]

SOURCES = [core, *tagging, *outside, *linking, *linked]
