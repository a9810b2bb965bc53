"""Sources for CoNLL-2003 after Lison et al. (2020): one spaCy model, lists of names, and what each document repeats.

The lists of places, companies, products and first names are read from `$TAGWEAVE_DATA/raw/dictionaries`; those of
countries, nationalities, languages, company endings and events lie beside this file.
"""

import os
from pathlib import Path

from tagweave.sources import (
    Corrected,
    Dictionary,
    DocumentHistory,
    DocumentMajority,
    FullNames,
    NameEndings,
    SpacyModel,
    TokenCount,
)

LISTS = Path(__file__).parent / "lists"
DICTIONARIES = Path(os.environ["TAGWEAVE_DATA"]) / "raw" / "dictionaries"
TYPES = ("LOC", "MISC", "ORG", "PER")
CONLL = "CoNLL-2003"


def words(name: str) -> tuple[str, ...]:
    """The lines of a list."""
    return tuple((LISTS / f"{name}.txt").read_text(encoding="utf-8").split("\n")[:-1])


def twice(name: str, file: str, type: str) -> list[Dictionary]:
    """A dictionary that minds the case of letters, and one that does not."""
    settings = {"rename": {"GPE": type, "COMPANY": type, "PRODUCT": type}, "min_length": 3}
    path = (DICTIONARIES / file,)
    return [
        Dictionary(f"{name}_cased", path, type=type, proper=True, **settings),
        Dictionary(f"{name}_uncased", path, type=type, proper=True, case="ignore", **settings),
    ]


def multitoken(sources: list[Dictionary]) -> list[TokenCount]:
    """What dictionaries find of two tokens or more."""
    return [TokenCount(f"multitoken_{source.name}", source.name, source.types) for source in sources]


model = SpacyModel("core_web_sm", rename=CONLL)
truecased = SpacyModel("core_web_sm_truecase", rename=CONLL, truecase=True)
places = twice("geo", "geonames.json.gz", "LOC")
companies = twice("crunchbase", "crunchbase-companies.json.gz", "ORG")
products = twice("products", "products.json.gz", "MISC")

misc = Dictionary(
    "misc_detector",
    (LISTS / "countries.tsv", LISTS / "nationalities.tsv", LISTS / "languages.tsv"),
    case="capitals",
)
events = NameEndings("event_detector", "MISC", words=words("event_words"))
full_names = FullNames("full_name_detector", "PER", lists=(DICTIONARIES / "first_names.json.gz",))
company_types = NameEndings("company_type_detector", "ORG", words=words("company_suffixes"))

VOTERS = ("edited_core_web_sm", "edited_core_web_sm_truecase", "geo_cased", "multitoken_crunchbase_cased")
VOTERS += ("misc_detector", "event_detector", "full_name_detector", "company_type_detector")

SOURCES = [
    model,
    Corrected("edited_core_web_sm", "core_web_sm", TYPES),
    truecased,
    Corrected("edited_core_web_sm_truecase", "core_web_sm_truecase", TYPES),
    *places,
    *companies,
    *products,
    *multitoken([*places, *companies, *products]),
    misc,
    events,
    full_names,
    company_types,
    DocumentMajority("doc_majority_cased", TYPES, VOTERS),
    DocumentMajority("doc_majority_uncased", TYPES, VOTERS, ignore_case=True),
    DocumentHistory("doc_history_cased", TYPES, VOTERS),
    DocumentHistory("doc_history_uncased", TYPES, VOTERS, ignore_case=True),
]
