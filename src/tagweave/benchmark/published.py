"""What Li et al. (ACL 2021) printed, as plain data: tables 1 to 3 and the scores of each source in the appendix."""

from dataclasses import dataclass, field
from typing import NamedTuple

_CONLL, _NCBI, _CDR, _LAPTOP = "conll-2003", "ncbi-disease", "bc5cdr", "laptop-review"


class Printed(NamedTuple):
    """Scores in percent, as printed."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Row:
    """A row of the main table.

    Attributes:
        title: as the paper has it.
        system: what makes it here.
        scores: by data set.
        own: whether the authors ran it; the other numbers they took from earlier papers.
        encoder: whether it contains an encoder, see `ENCODERS`.
    """

    title: str
    system: str
    scores: dict[str, Printed] = field(default_factory=dict)
    own: bool = True
    encoder: bool = False


ENCODERS = {_CONLL: "BERT", _NCBI: "BioBERT", _CDR: "SciBERT", _LAPTOP: "BERT"}
"""The encoder of the authors' own runs on each data set."""


def _row(
    title: str, system: str, *scores: tuple[float, float, float] | None, own: bool = True, encoder: bool = False
) -> Row:
    """Scores as the paper orders them: F1, precision, recall on each data set."""
    found = {
        dataset: Printed(precision, recall, f1)
        for dataset, printed in zip((_CONLL, _NCBI, _CDR, _LAPTOP), scores, strict=True)
        if printed is not None
        for f1, precision, recall in [printed]
    }
    return Row(title, system, found, own, encoder)


# fmt: off
MAIN_TABLE = (
    _row("Supervised BERT-NER", "supervised", (90.74, 90.37, 91.10), (88.89, 87.05, 90.82), (88.81, 87.12, 90.57),
         (81.34, 82.02, 80.67), encoder=True),
    _row("best consensus", "best-consensus", (89.18, 100.0, 80.47), (81.60, 100.0, 68.91), (87.58, 100.0, 77.89),
         (77.72, 100.0, 63.55)),
    _row("SwellShark (noun-phrase)", "swellshark-np+bert", None, (67.10, 64.70, 69.70), (84.23, 84.98, 83.49), None,
         own=False),
    _row("SwellShark (hand-tuned)", "swellshark+bert", None, (80.80, 81.60, 80.10), (84.21, 86.11, 82.39), None,
         own=False),
    _row("AutoNER", "autoner", (67.00, 75.21, 60.40), (75.52, 79.42, 71.98), (82.13, 83.23, 81.06),
         (65.44, 72.27, 59.79), own=False),
    _row("Snorkel", "naive-bayes+bert", (66.40, 71.40, 62.10), (73.41, 71.10, 76.00), (82.24, 80.23, 84.35),
         (63.54, 64.09, 63.09), own=False),
    _row("Linked HMM", "linked-hmm+bert", None, (79.03, 83.46, 75.05), (82.96, 82.65, 83.28), (69.04, 77.74, 62.11),
         own=False),
    _row("BOND-MV", "majority-vote+bond", (65.96, 64.22, 67.82), (80.33, 84.77, 76.34), (83.18, 82.90, 83.49),
         (67.19, 68.90, 65.75), encoder=True),
    _row("Majority Voting", "majority-vote", (58.40, 49.01, 72.24), (73.94, 79.76, 68.91), (80.73, 83.79, 77.88),
         (67.92, 72.93, 63.55)),
    _row("HMM", "hmm", (68.84, 70.80, 66.98), (73.06, 83.88, 64.70), (80.57, 88.75, 73.76), (66.96, 77.46, 58.96)),
    _row("CHMM-i.i.d.", "chmm-iid", (68.57, 69.67, 67.50), (71.69, 83.49, 62.87), (79.37, 85.68, 73.92),
         (65.89, 75.70, 58.34), encoder=True),
    _row("CHMM", "chmm", (70.11, 72.98, 67.47), (78.88, 93.37, 68.28), (82.39, 89.93, 76.02), (73.02, 87.23, 62.79),
         encoder=True),
    _row("CHMM + BERT-NER", "chmm+bert", (74.30, 75.02, 73.58), (82.87, 89.42, 77.22), (84.33, 85.58, 83.12),
         (69.67, 75.48, 64.70), encoder=True),
    _row("CHMM-ALT", "chmm-alt", (75.54, 76.22, 74.86), (85.02, 87.92, 82.47), (85.12, 84.97, 85.28),
         (76.55, 81.39, 72.32), encoder=True),
)
"""Table 2. Of each number the paper prints F1 (precision/recall)."""

OTHER_TITLES = {
    "span-vote": "Span vote", "dawid-skene": "Dawid-Skene", "naive-bayes": "Naive Bayes, label model alone",
    "linked-hmm": "Linked HMM, label model alone", "swellshark-np": "SwellShark (noun-phrase), label model alone",
    "swellshark": "SwellShark on spans of sources",
    "majority-vote-alt": "MV-ALT", "hmm-alt": "HMM-ALT", "chmm-iid-alt": "CHMM-i.i.d.-ALT",
    "dev-only": "BERT-NER on the gold of dev alone", "fine-tuned": "CHMM + BERT-NER, fine-tuned on the gold of dev",
}
"""Systems that are no row of table 2."""

ALTERNATE_TABLE = {
    "majority-vote-alt": {_CONLL: 66.64, _NCBI: 80.83, _CDR: 82.78, _LAPTOP: 70.45},
    "hmm-alt": {_CONLL: 74.04, _NCBI: 82.99, _CDR: 83.34, _LAPTOP: 72.90},
    "chmm-iid-alt": {_CONLL: 73.84, _NCBI: 83.15, _CDR: 83.17, _LAPTOP: 72.61},
    "chmm-alt": {_CONLL: 75.54, _NCBI: 85.02, _CDR: 85.12, _LAPTOP: 76.55},
}
"""F1 of table 3; the rows without alternate training are those of table 2."""

STATISTICS = {
    _CONLL: {"instances": 22137, "train": 14041, "dev": 3250, "test": 3453, "tokens": 14.5, "types": 4, "sources": 13},
    _NCBI: {"instances": 793, "train": 593, "dev": 100, "test": 100, "tokens": 219.8, "types": 1, "sources": 5},
    _CDR: {"instances": 1500, "train": 500, "dev": 500, "test": 500, "tokens": 217.7, "types": 2, "sources": 8},
    _LAPTOP: {"instances": 3845, "train": 2436, "dev": 609, "test": 800, "tokens": 16.4, "types": 1, "sources": 4},
}
"""Table 1; `tokens` is the mean of an instance."""

SOURCES = {
    _NCBI: {
        "tag-CoreDictionaryUncased": Printed(81.03, 41.41, 5.48),
        "tag-CoreDictionaryExact": Printed(80.69, 17.18, 28.32),
        "tag-CancerLike": Printed(34.88, 1.58, 3.02),
        "tag-BodyTerms": Printed(68.52, 3.90, 7.38),
        "link-ExtractedPhrase": Printed(97.12, 32.03, 48.18),
    },
    _CDR: {
        "tag-DictCore-Chemical": Printed(91.81, 29.55, 44.7),
        "tag-DictCore-Chemical-Exact": Printed(85.88, 3.16, 6.1),
        "tag-DictCore-Disease": Printed(81.57, 26.32, 39.8),
        "tag-DictCore-Disease-Exact": Printed(81.4, 1.09, 2.16),
        "tag-Organic Chemical": Printed(92.67, 30.07, 45.4),
        "tag-Disease or Syndrome": Printed(77.36, 11.67, 20.28),
        "link-PostHyphen": Printed(84.47, 8.07, 14.74),
        "link-ExtractedPhrase": Printed(86.8, 17.96, 29.76),
    },
    _LAPTOP: {
        "tag-CoreDictionary": Printed(72.63, 51.61, 60.34),
        "tag-iStuff": Printed(26.67, 0.61, 1.2),
        "link-ExtractedPhrase": Printed(97.45, 29.25, 45.0),
        "link-ConsecutiveCapitals": Printed(35.29, 0.92, 1.8),
    },
    _CONLL: {
        "edited_BTC": Printed(61.56, 46.35, 52.88),
        "SEC+c": Printed(39.54, 24.59, 30.32),
        "edited_core_web_md": Printed(69.53, 60.04, 64.44),
        "crunchbase_cased": Printed(38.26, 5.59, 9.76),
        "crunchbase_uncased": Printed(37.88, 6.2, 10.66),
        "doc_majority_cased": Printed(65.81, 40.21, 49.92),
        "doc_majority_uncased": Printed(61.69, 40.17, 48.66),
        "full_name_detector": Printed(87.79, 11.33, 20.06),
        "geo_cased": Printed(68.16, 15.35, 25.06),
        "geo_uncased": Printed(65.1, 18.89, 29.28),
        "misc_detector": Printed(85.14, 21.51, 34.34),
        "wiki_cased": Printed(75.27, 32.65, 45.54),
        "wiki_uncased": Printed(72.26, 35.61, 47.7),
    },
}
"""By the names of the sources in the data. The files lack SEC+c, and the first F1 is a misprint: its precision and
recall make 54.8."""
# fmt: on


def published_scores(system: str, dataset: str) -> Printed | None:
    """Printed scores of a row of table 2."""
    return next((row.scores.get(dataset) for row in MAIN_TABLE if row.system == system), None)


def published_f1(system: str, dataset: str) -> float | None:
    """Printed F1 of a system, from table 2 or 3.

    >>> published_f1("hmm-alt", "bc5cdr"), published_f1("span-vote", "bc5cdr")
    (83.34, None)
    """
    scores = published_scores(system, dataset)
    return scores.f1 if scores is not None else ALTERNATE_TABLE.get(system, {}).get(dataset)


def title_of(system: str) -> str:
    """What a system is called in tables.

    >>> title_of("chmm-alt"), title_of("hmm+bert")
    ('CHMM-ALT', 'hmm+bert')
    """
    return next((row.title for row in MAIN_TABLE if row.system == system), OTHER_TITLES.get(system, system))
