"""The sources of the demo corpus: small rules and dictionaries of very different worth.

They are an example of a file of sources, too: each yields half-open spans `(start, end)` or `(start, end, type)`, in
tokens, and abstains from everything else. The type `O` is a vote that the tokens are no entity.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tagweave.corpus import Document
from tagweave.sources import Dictionary, Source, Vote, labeling_function

FUNCTION_WORDS = frozenset(
    "a about after again against all although am an and any anybody are as at be because been before being below both "
    "but by can could did do does down during each either every few for from had has have he her here his how i if in "
    "into is it its just less like made make may might more most much must my near nearly neither no nor not nothing "
    "of off often on once one only or other our out over own quite rather same she should since so some such than "
    "that the their them then there these they this those three through till to too two under until up upon us "
    "usually very was we were what when where whether which while who why will with without would yet you your".split()
)
"""Words that never are part of the name that a rule looks for."""

DETERMINERS = frozenset("a an the my our your his her their some any this that these those more each every".split())


def base_forms(word: str) -> tuple[str, ...]:
    """The word, and what it may be the plural of.

    Example:
        >>> base_forms("berries")
        ('berries', 'berrie', 'berri', 'berry')
    """
    endings = (("s", ""), ("es", ""), ("ies", "y"))
    fitting = ((end, put) for end, put in endings if word.endswith(end) and len(word) > len(end) + 2)
    return word, *(word.removesuffix(end) + put for end, put in fitting)


def with_plurals(name: str) -> tuple[str, ...]:
    """The phrases of one of the lists beside this module, and what may be their plurals.

    Example:
        >>> {"cherry", "cherries"} <= set(with_plurals("plants.txt"))
        True
    """
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    forms = {phrase: None for line in lines for phrase in (line, *_plurals(line))}
    return tuple(forms)


def _plurals(phrase: str) -> Iterator[str]:
    if phrase.endswith("y"):
        yield f"{phrase[:-1]}ies"
    yield f"{phrase}s"
    yield f"{phrase}es"


def _listed(name: str, file: str, type: str, description: str) -> Dictionary:
    return Dictionary(name, description=description, words=with_plurals(file), type=type, case="ignore")


plants_dictionary = _listed(
    "plants-dictionary", "plants.txt", "Plant", "Common names of plants, in any case; precise, but the list has gaps."
)
nursery_catalogue = _listed(
    "nursery-catalogue",
    "nursery_catalogue.txt",
    "Plant",
    "Names from a catalogue in any case, among them words such as rose, sage, may or winter; noisy.",
)
problems_dictionary = _listed(
    "problems-dictionary",
    "problems.txt",
    "Problem",
    "Pests and diseases in any case; precise, except for the rust on a gate.",
)
remedies_dictionary = _listed(
    "remedies-dictionary",
    "remedies.txt",
    "Treatment",
    "Products and remedies in any case; precise, but the list has gaps.",
)
_GENERA = Dictionary("genera", words=with_plurals("plants_latin.txt"), type="Plant")


@labeling_function("Plant", name="latin-genera")
def latin_genera(document: Document) -> Iterator[Vote]:
    """Latin names of genera with a capital, and the word after them if it is in lower case; loses cultivar names."""
    tokens = document.tokens
    for vote in next(iter(_GENERA.annotate([document]))) or ():
        start, end = vote[0], vote[1]
        has_epithet = end < len(tokens) and tokens[end].islower() and _is_content(tokens[end])
        yield start, end + has_epithet


PROBLEM_HEAD = re.compile(
    r"(?:mildew|blight|rot|wilt|weevil|sawfly|fly|mite|beetle|moth|rust|scab|aphid|midge|canker|spot|virus)(?:e?s)?",
    re.IGNORECASE,
)


@labeling_function("Problem", name="problem-heads")
def problem_heads(document: Document) -> Iterator[Vote]:
    """A word such as mildew, blight or weevil with up to two words before it; takes too many of them now and then."""
    tokens = document.tokens
    done = 0
    for head, token in enumerate(tokens):
        if PROBLEM_HEAD.fullmatch(token) and not PROBLEM_HEAD.fullmatch("".join(tokens[head + 1 : head + 2])):
            start = head
            while start > max(head - 2, done) and _is_content(tokens[start - 1]):
                start -= 1
            yield start, head + 1, "Problem"
            done = head + 1


def _is_content(token: str) -> bool:
    return token[0].isalpha() and token.lower() not in FUNCTION_WORDS


def _name_after(tokens: Sequence[str], start: int, longest: int) -> tuple[int, int]:
    """Start and end of the content words after `start` and its determiners; an empty span if there are none."""
    while start < len(tokens) and tokens[start].lower() in DETERMINERS:
        start += 1
    end = start
    while end < min(start + longest, len(tokens)) and _is_content(tokens[end]):
        end += 1
    return start, end


TREATING = frozenset(
    "spray sprayed spraying treat treated treating dust dusted drench drenched wash washed feed fed painted paint "
    "wrapped wiped covered".split()
)
MEASURES = frozenset(
    "teaspoon spoonful handful dusting dressing pinch solution drench ring layer barrier drop sheet".split()
)


@labeling_function("Treatment", name="treatment-triggers")
def treatment_triggers(document: Document) -> Iterator[Vote]:
    """What follows sprayed, treated or fed with, or a handful of; guesses where the name ends."""
    tokens = document.tokens
    words = [token.lower() for token in tokens]
    for position, word in enumerate(words):
        treating = word == "with" and not TREATING.isdisjoint(words[max(position - 5, 0) : position])
        measured = word == "of" and position > 0 and words[position - 1] in MEASURES
        if treating or measured:
            start, end = _name_after(tokens, position + 1, longest=3)
            if start < end:
                yield start, end, "Treatment"


PROBLEM_TRIGGERS = frozenset(
    "infested with,riddled with,suffer from,suffered from,clear of,free of,cure for,trace of,attack of,case of,"
    "prone to,lost to".split(",")
)
PROBLEM_WORDS = frozenset("against suspect".split())


@labeling_function("Problem", name="problem-triggers")
def problem_triggers(document: Document) -> Iterator[Vote]:
    """What follows infested with, free of, against and the like; right about every second time."""
    tokens = document.tokens
    words = [token.lower() for token in tokens]
    for position, word in enumerate(words):
        if word in PROBLEM_WORDS or " ".join(words[max(position - 1, 0) : position + 1]) in PROBLEM_TRIGGERS:
            start, end = _name_after(tokens, position + 1, longest=3)
            if start < end:
                yield start, end, "Problem"


LATIN_EPITHET = re.compile(r"[a-z]{2,}(?:us|um|is|ii|ae|ea|ia|ca|ra|la|na|ta|sa|ens|oides|ense)")


@labeling_function("Plant", name="latin-binomial")
def latin_binomial(document: Document) -> Iterator[Vote]:
    """A capitalised word before a lower-case one that looks Latin; fooled by the Latin names of animals."""
    tokens = document.tokens
    for position in range(len(tokens) - 1):
        if re.fullmatch(r"[A-Z][a-z]{3,}", tokens[position]) and LATIN_EPITHET.fullmatch(tokens[position + 1]):
            yield position, position + 2, "Plant"


@labeling_function("Plant", name="cultivar-quotes")
def cultivar_quotes(document: Document) -> Iterator[Vote]:
    """A capitalised name in single quotes together with the plant before it; rare and reliable."""
    tokens = document.tokens
    for opening in range(1, len(tokens) - 2):
        if tokens[opening] == "'" and tokens[opening + 1][0].isupper() and _is_content(tokens[opening - 1]):
            window = range(opening + 2, min(opening + 6, len(tokens)))
            closing = next((end for end in window if tokens[end] == "'"), None)
            if closing is not None:
                latin = opening > 1 and tokens[opening - 1].islower() and tokens[opening - 2][0].isupper()
                yield opening - 1 - latin, closing + 1, "Plant"


@labeling_function("Plant", name="capitalised-words")
def capitalised_words(document: Document) -> Iterator[Vote]:
    """Any run of capitalised words that does not begin the sentence; finds cultivars among people, towns and days."""
    tokens = document.tokens
    start = 1
    while start < len(tokens):
        end = start
        while end < len(tokens) and re.fullmatch(r"[A-Z][\w'’-]+", tokens[end]) and not tokens[end].startswith("I'"):
            end += 1
        if end > start and tokens[start - 1] not in {".", "?", "!", ":", "'"}:
            yield start, end, "Plant"
        start = end + 1


GARDENING_VERBS = frozenset(
    "grow grown growing sow sown plant planted planting prune lift lifted stake choose stock recommend tie".split()
)


@labeling_function("Plant", name="gardening-verbs")
def gardening_verbs(document: Document) -> Iterator[Vote]:
    """The words after grow, sow, plant or prune; as often as not the thing is no plant."""
    tokens = document.tokens
    for position, token in enumerate(tokens):
        if token.lower() in GARDENING_VERBS:
            start, end = _name_after(tokens, position + 1, longest=2)
            if start < end:
                yield start, end, "Plant"


BEFORE_VERB_ROSE = frozenset("i he she it we they who prices sun clouds".split())
IDIOMS = frozenset(
    "mint condition,sage advice,sage counsel,sage voice,sage green,wore violet,in violet,violet came,iris from,"
    "coarse rose,fine rose,compass rose,rose prices,rose again".split(",")
)
AMBIGUOUS = frozenset("rose mint sage violet iris".split())
METAL = frozenset("gate hinge spade shears secateurs tools handle socket".split())


@labeling_function(name="ambiguous-words")
def ambiguous_words(document: Document) -> Iterator[Vote]:
    """A vote for O on rose, sage, mint or rust where the words around tell that no plant or disease is meant."""
    tokens = document.tokens
    words = [token.lower() for token in tokens]
    metal = not METAL.isdisjoint(words)
    for position, word in enumerate(words):
        before = words[position - 1] if position else ""
        after = words[position + 1] if position + 1 < len(words) else ""
        verb = word == "rose" and before in BEFORE_VERB_ROSE
        idiom = word in AMBIGUOUS and not IDIOMS.isdisjoint({f"{before} {word}", f"{word} {after}"})
        if verb or idiom or (word == "rust" and metal):
            yield position, position + 1, "O"


GENERIC_WORDS = frozenset(
    "plant tree shrub bush flower leaf leaves garden soil compost mulch weed pest disease fungus spray feed "
    "fertiliser seed seedling pot border bed lawn greenhouse allotment nursery label root stem bulb frost year week "
    "winter summer spring monday tuesday wednesday thursday friday saturday sunday january february march april june "
    "july august september october november december christmas".split()
)


@labeling_function(name="generic-words")
def generic_words(document: Document) -> Iterator[Vote]:
    """A vote for O on words too general to be a name (plant, pest, months); wrong inside a longer name."""
    tokens = document.tokens
    for position, token in enumerate(tokens):
        if not GENERIC_WORDS.isdisjoint(base_forms(token.lower())):
            yield position, position + 1, "O"


SOURCES: list[Source] = [
    plants_dictionary,
    latin_genera,
    nursery_catalogue,
    problems_dictionary,
    remedies_dictionary,
    problem_heads,
    treatment_triggers,
    problem_triggers,
    latin_binomial,
    cultivar_quotes,
    capitalised_words,
    gardening_verbs,
    ambiguous_words,
    generic_words,
]
"""All sources, in the order that they have in the corpus."""
