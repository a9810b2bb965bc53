"""Checks of what files are read as, and of what is said about them."""

import os
import re
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from cases.harness import Check, check, parts, run
from tagweave.annotations import Annotations
from tagweave.corpus import Corpus, Document
from tagweave.errors import TagweaveError, TagweaveWarning
from tagweave.formats import FormatWarning, read, write
from tagweave.formats.tags import tags_from_spans


def load(item: Check, path: Path | None = None, **arguments: Any) -> tuple[Corpus, list[FormatWarning]]:  # noqa: ANN401
    """A file of the case as a corpus, and what was said about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        corpus = read(path or item.path, **{**item.arguments, **arguments})
    assert all(issubclass(warning.category, TagweaveWarning) for warning in caught)
    assert len(caught) <= 1, "one warning for a file"
    return corpus, [warning.message for warning in caught if isinstance(warning.message, FormatWarning)]


def corpus_of(item: Check) -> Corpus:
    """A file of the case as a corpus."""
    return load(item)[0]


def document_of(item: Check, corpus: Corpus) -> Document:
    """The document that a check names."""
    return corpus[corpus.id_list.index(str(item.expected["doc"]))]


def tags_of(document: Document) -> list[str]:
    """BIO tags of the entities of a document."""
    return tags_from_spans(document.entities or (), len(document.tokens))


def character_spans(document: Document) -> list[list[Any]]:
    """Start and end in the text, type and text of the entities of a document."""
    assert document.text is not None and document.characters is not None
    found = []
    for span in document.entities or ():
        start, end = document.characters[span.start][0], document.characters[span.end - 1][1]
        found.append([start, end, span.type, document.text[start:end]])
    return found


def mentions(message: str, wanted: list[str]) -> bool:
    """Whether a message holds every wanted text; `|` stands between alternatives."""
    return all(re.search("|".join(map(re.escape, text.split("|"))), message, re.IGNORECASE) for text in wanted)


def failure(item: Check) -> str | None:
    """The message of the error that reading a file ends with, None if it is read."""
    try:
        load(item)
    except TagweaveError as error:
        return str(error)
    return None


@check("sentences")
@check("docs")
def number_of_documents(item: Check) -> None:
    assert len(corpus_of(item)) == item.expected["n"]


@check("documents")
def groups(item: Check) -> None:
    numbers = corpus_of(item).group_numbers.tolist()
    found = [[index for index, number in enumerate(numbers) if number == group] for group in dict.fromkeys(numbers)]
    assert found == item.expected["groups"]


@check("tokens")
def tokens(item: Check) -> None:
    assert [list(document.tokens) for document in corpus_of(item)] == item.expected["value"]


@check("tags")
def tags(item: Check) -> None:
    assert [tags_of(document) for document in corpus_of(item)] == item.expected["value"]


@check("source_tags")
def source_tags(item: Check) -> None:
    corpus = corpus_of(item)
    column = corpus.sources[item.expected["source"]]
    assert isinstance(column, Annotations)
    spans = column.without_overlaps().document(corpus.id_list.index(item.expected["doc"]), corpus.vocabulary)
    assert tags_from_spans(spans or (), len(document_of(item, corpus).tokens)) == item.expected["value"]


@check("entities_tok")
def entities_by_token(item: Check) -> None:
    found = [
        [index, span.start, span.end, span.type]
        for index, document in enumerate(corpus_of(item))
        for span in document.entities or ()
    ]
    assert found == item.expected["value"]


@check("spans")
def spans(item: Check) -> None:
    assert character_spans(document_of(item, corpus_of(item))) == item.expected["value"]


@check("align")
def alignment(item: Check) -> None:
    corpus, said = load(item, alignment=item.expected["mode"])
    document = document_of(item, corpus)
    assert [list(span[:3]) for span in document.entities or ()] == item.expected["entities"]
    problems = [problem for warning in said for problem in warning.problems if problem.kind == "misaligned"]
    assert Counter(problem.document for problem in problems)[document.id] == item.expected["misaligned"]
    assert all(repr(problem.document) not in problem.message for problem in problems)


@check("token_offsets")
def token_offsets(item: Check) -> None:
    document = document_of(item, corpus_of(item))
    assert document.characters is not None
    found = [[token, *place] for token, place in zip(document.tokens, document.characters, strict=True)]
    assert found == item.expected["value"]
    assert document.text is not None
    assert all(document.text[start:end] == token for token, start, end in found)


@check("text_unchanged")
def text_unchanged(item: Check) -> None:
    document = document_of(item, corpus_of(item))
    assert document.text == item.expected["value"]


@check("never_token")
def never_token(item: Check) -> None:
    assert item.expected["value"] not in corpus_of(item).tokens.to_pylist()


@check("entity_types")
def entity_types(item: Check) -> None:
    assert sorted(corpus_of(item).types) == sorted(item.expected["value"])


@check("never_entity_type")
def never_entity_type(item: Check) -> None:
    if failure(item) is None:
        assert not set(item.expected["value"]) & set(corpus_of(item).types)


@check("never_shifted")
def never_shifted(item: Check) -> None:
    if failure(item) is None:
        found = [text for _, _, _, text in character_spans(document_of(item, corpus_of(item)))]
        assert found == item.expected["if_loaded_span_text"]


@check("error")
def error(item: Check) -> None:
    message = failure(item)
    assert message is not None, "no error"
    assert mentions(message, item.expected["message_mentions"]), message


@check("no_error")
def no_error(item: Check) -> None:
    assert failure(item) is None


@check("warning")
def warning(item: Check) -> None:
    messages = [str(said) for said in load(item)[1]]
    assert any(mentions(message, item.expected["mentions"]) for message in messages), messages


@check("error_or_warning")
def error_or_warning(item: Check) -> None:
    message = failure(item)
    messages = [message] if message is not None else [str(said) for said in load(item)[1]]
    assert any(mentions(text, item.expected["message_mentions"]) for text in messages), messages


@check("report_count")
def report_count(item: Check) -> None:
    assert _reported(item) == item.expected["n"]


@check("report_count_at_least")
def report_count_at_least(item: Check) -> None:
    assert _reported(item) >= item.expected["n"]


def _reported(item: Check) -> int:
    counts: Counter[str] = Counter()
    for said in load(item)[1]:
        counts.update(said.counts)
    return counts[item.expected["what"]]


@check("report_lists")
def report_lists(item: Check) -> None:
    named = {problem.document for said in load(item)[1] for problem in said.problems}
    assert named == set(item.expected["docs"])


@check("same_for_files", all_files=True)
def same_for_files(item: Check) -> None:
    found = [[(list(document.tokens), document.entities) for document in load(item, path)[0]] for path in item.paths]
    assert len(found) > 1
    assert all(documents == found[0] for documents in found)


@check("one_of")
def one_of(item: Check) -> None:
    failures = []
    for option in item.expected["options"]:
        try:
            for part in parts(item, option):
                run(part)
        except (AssertionError, TagweaveError) as error:
            failures.append(str(error))
        else:
            return
    raise AssertionError("; ".join(failures))


@check("roundtrip")
def roundtrip(item: Check) -> None:
    """Written in a format and read again, or refused with the name of the document."""
    corpus = corpus_of(item)
    path = item.scratch / f"{item.path.stem}.{item.expected['format']}"
    if "refused" in item.expected:
        try:
            write(corpus, path)
        except TagweaveError as error:
            assert mentions(str(error), item.expected["refused"])
            assert list(item.scratch.iterdir()) == []
            return
        raise AssertionError("written")
    write(corpus, path)
    again = load(item, path)[0]
    for name in item.expected["compare"]:
        assert [_aspect(name, document) for document in again] == [_aspect(name, document) for document in corpus]


def _aspect(name: str, document: Document) -> object:
    aspects = {"tokens": document.tokens, "n_tokens": len(document.tokens), "tags": tags_of(document)}
    return aspects[name]


@check("run_with_env")
def run_with_environment(item: Check) -> None:
    """Reading and writing do not depend on the machine's language."""
    path = item.scratch / "out.conll"
    program = (
        "from tagweave.formats import read, write\n"
        f"corpus = read({str(item.path)!r})\n"
        f"write(corpus, {str(path)!r})\n"
        "write(corpus, '-', format='conll')\n"
    )
    environment = {**os.environ, **item.expected["env"], "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, timeout=900)
    assert result.returncode == 0, result.stderr
    assert result.stdout == path.read_bytes()
    assert [list(document.tokens) for document in read(path)] == [list(document.tokens) for document in corpus_of(item)]
