"""`tailor`: the part of a dictionary that a corpus speaks of."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain

import numpy as np

from tagweave.sources.phrase_matching import PhraseMatcher, spellings


def tailor(entries: Mapping[str, Sequence[str]], texts: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The entries of a dictionary whose canonical names occur in texts, in any case (Shang et al., EMNLP 2018).

    Who writes of a thing is likely to call it by its full name once. So where that never occurs, its synonyms, some of
    them short and ambiguous, mean something else.

    Args:
        entries: synonyms of each thing, by its canonical name.
        texts: the tokens of each text.

    Returns:
        Of each entry that is left all forms, the canonical name first, each once.

    >>> drugs = {"acetylsalicylic acid": ["aspirin", "ASA"], "5-aminosalicylic acid": ["mesalazine", "ASA"]}
    >>> tailor(drugs, [["Acetylsalicylic", "acid", "(", "ASA", ")", "helps"]])
    {'acetylsalicylic acid': ('acetylsalicylic acid', 'aspirin', 'ASA')}
    """
    words = [text for text in texts if text]
    names = list(entries)
    spelled = spellings(names, folded=True)
    numbers = {spelling: number for number, spelling in enumerate(dict.fromkeys(spelled)) if spelling}
    found: set[int] = set()
    if words and numbers:
        ends = np.array(list(accumulate(map(len, words))))
        tokens = list(chain.from_iterable(words))
        hits = PhraseMatcher(numbers, folded=True).find(tokens, ends - 1, np.zeros(len(tokens), bool))
        found.update(hits.kinds.tolist())
    kept = [name for name, spelling in zip(names, spelled, strict=True) if numbers.get(spelling, -1) in found]
    return {name: tuple(dict.fromkeys((name, *entries[name]))) for name in kept}
