"""Tokens and sentences by spaCy: the tokeniser of a language and the sentencizer, without any model.

spaCy is loaded when the first text is cut. Blanks that spaCy takes for tokens are none here.
"""

import re
from functools import cache
from typing import Any

from tagweave.errors import MissingExtraError, UsageError
from tagweave.formats.words import Offsets

_MOST_STRINGS = 1_000_000
"""How many different strings spaCy may have kept before it is made anew, so that memory does not grow with the text."""


@cache
def blank_pipeline(language: str) -> "BlankPipeline":
    """The tokeniser and sentencizer of a language, made once.

    Raises:
        UsageError: spaCy does not know the language.
        MissingExtraError: spaCy, or what it needs for the language, is not installed.
    """
    return BlankPipeline(language)


class BlankPipeline:
    """Cuts text by the rules that spaCy has for a language.

    Args:
        language: code of the language as spaCy has it: `en`, `de`, or `xx` for any.

    >>> text = "Dr. Ng moved.  She didn't stay."
    >>> offsets, starts = BlankPipeline("en").cut(text, sentences=True)
    >>> [text[start:end] for start, end in offsets]
    ['Dr.', 'Ng', 'moved', '.', 'She', 'did', "n't", 'stay', '.']
    >>> starts
    [0, 4]
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._make()

    def _make(self) -> None:
        nlp = _blank(self._language)
        self._strings = nlp.vocab.strings
        self._tokenizer = nlp.tokenizer
        self._sentencizer = nlp.add_pipe("sentencizer")

    def cut(self, text: str, sentences: bool) -> tuple[Offsets, list[int]]:
        """Tokens and sentences of a text.

        Args:
            text: any text, of any length.
            sentences: whether to look for sentences; without it all is one.

        Returns:
            Start and end of each token, so that `text[start:end]` is the token, and the number of the first token of
            each sentence.
        """
        from spacy.attrs import IDX, IS_SPACE, LENGTH

        if len(self._strings) > _MOST_STRINGS:
            self._make()
        parsed = self._tokenizer(text)
        begins = self._sentencizer.predict([parsed])[0] if sentences else [False] * len(parsed)
        offsets: Offsets = []
        starts: list[int] = [0]
        pending = False
        for (start, length, blank), begin in zip(
            parsed.to_array([IDX, LENGTH, IS_SPACE]).tolist(), begins, strict=True
        ):
            pending = pending or begin
            if blank:
                continue
            if pending and offsets:
                starts.append(len(offsets))
            pending = False
            offsets.append((start, start + length))
        return offsets, starts


def _blank(language: str) -> Any:  # noqa: ANN401
    try:
        import spacy
    except ImportError:
        raise MissingExtraError(
            "tokenizer='spacy' needs spaCy, which is not installed: pip install 'tagweave[spacy]'"
        ) from None
    try:
        known = re.fullmatch(r"[a-z]{2,3}", language) and spacy.util.get_lang_class(language)
    except ImportError:
        known = None
    if not known:
        raise UsageError(
            f"spaCy knows no language {language!r}. Codes such as 'en', 'de' or 'zh' are expected, or 'xx' for any"
        )
    try:
        return spacy.blank(language)
    except ImportError as error:
        raise MissingExtraError(f"spaCy cannot cut text in the language {language!r}: {error}") from None
