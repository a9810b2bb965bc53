"""`LanguageModel`: the entities that a large language model names when it is asked."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from tagweave.corpus import Document
from tagweave.errors import SourceError, TagweaveError, TagweaveWarning, UsageError
from tagweave.formats.words import Alignment
from tagweave.sources.aligning import SIMILARITY, Occurrences, Unaligned, place
from tagweave.sources.answers import AnswerCache, read_list, read_lists
from tagweave.sources.base import Source, Votes
from tagweave.sources.chat import Chat, Outcome
from tagweave.storage import cache_folder

PROMPT = """Find the entities of one type in a text.

Type: {type}
Definition: {definition}

{answer}

Text:
{text}"""
"""The default question; what is in braces is filled in."""

_ONE = (
    "Copy each entity letter by letter from the text, in the order of the text, once for each time that it occurs. "
    "Answer with a JSON list of strings and nothing else; answer [] if there is none."
)
_SEVERAL = (
    "There are {count} numbered texts. Copy each entity letter by letter from its text, in the order of the text, once "
    "for each time that it occurs. Answer with a JSON object and nothing else. Its keys are the numbers of all texts, "
    'its values are JSON lists of strings, [] for a text without any: {{"1": ["...", "..."], "2": [], ...}}'
)
_MOST_NAMED = 20
"""Strings that an answer may hold beside two for each token; what comes after them is no list of entities."""
_PLACEHOLDER = re.compile(r"\{(type|definition|answer|text)\}")

_GIVE_UP = 10
"""So many questions in a row to which the server says nothing end the run, and so many malformed answers at its start:
something is wrong that waiting does not mend."""


class _Question(NamedTuple):
    type: str
    text: str


_Answers = dict[_Question, list[str] | None]


@dataclass
class LanguageModel(Source):
    """The entities that a language model names.

    There is one question for each text and type. What the model names is looked for in the text (see
    `tagweave.sources.aligning`), and what is not there is counted and left out. A document of which a question gets no
    usable answer, and one in which the model names nothing at all, abstains.

    Answers are kept on disk, so that a second run asks only what is new. Neither the key nor any text is written there.

    Attributes:
        url: address of the interface, see `tagweave.sources.chat.Chat`.
        model: what the server calls the model.
        definitions: what each type means, in words for the model; the types of the source.
        api_key_env: name of the environment variable that holds the key.
        prompt: the question, with `{type}`, `{definition}`, `{answer}` (how to answer) and `{text}` where they belong.
        documents_per_request: how many texts are in one request.
        parallel: how many requests are under way at a time, in each process.
        parameters: more fields of a request, such as `temperature`, `max_tokens`, `reasoning_effort`.
        abstain: whether it abstains on a document in which it names nothing; otherwise it found nothing there, which
            the label model may count against an entity.
        occurrences: `listed`: a string that is named once is found once, from left to right; `all`: everywhere.
        similarity: how alike a string must be to what is in the text, of 100; above 100 it must be there as it is, but
            for case, accents, blanks, quotation marks and dashes.
        alignment: what becomes of a place that begins or ends inside a token.
        unaligned: a JSON lines file to which is written what is not in the text.
        cache: folder of the answers; by default `$TAGWEAVE_CACHE` or `~/.cache/tagweave`, and in it `language-models`.
        timeout: seconds to wait for the server, and for the whole of its response.
        retries: how often a question without usable answer is asked again.
        wait: seconds before it is asked again, doubled each time; longer if the server says so.
        longest_wait: most seconds to wait before it is asked again, whatever the server says.
        prompt_price: price of a million tokens of questions, for the counter of costs.
        completion_price: price of a million tokens of answers.

    >>> LanguageModel("llm", "http://localhost:8000/v1", "small", {"LOC": "Towns, rivers, mountains, countries"}).types
    ('LOC',)
    """

    kind = "language-model"
    keeps_time = True

    url: str
    model: str
    definitions: dict[str, str]
    api_key_env: str | None = None
    prompt: str = PROMPT
    documents_per_request: int = 1
    parallel: int = 4
    parameters: dict[str, Any] = field(default_factory=lambda: {"temperature": 0})
    abstain: bool = True
    occurrences: Occurrences = "listed"
    similarity: float = SIMILARITY
    alignment: Alignment = "strict"
    unaligned: Path | None = None
    cache: Path | None = None
    timeout: float = 120.0
    retries: int = 4
    wait: float = 1.0
    longest_wait: float = 60.0
    prompt_price: float = 0.0
    completion_price: float = 0.0

    _failures_in_a_row: int = field(default=0, init=False, repr=False)
    _works: bool = field(default=False, init=False, repr=False)
    _problem: str = field(default="", init=False, repr=False)
    _gave_up: str = field(default="", init=False, repr=False)
    _warned: bool = field(default=False, init=False, repr=False)
    _owed: float = field(default=0.0, init=False, repr=False)

    @property
    def types(self) -> tuple[str, ...]:
        """The types that are defined."""
        return tuple(self.definitions)

    def __getstate__(self) -> dict[str, Any]:
        """Other processes make what is not a setting themselves."""
        return {name: value for name, value in vars(self).items() if name not in ("_chat", "_answers", "_lost")}

    def load(self) -> None:
        """Check the settings; no request is made.

        Raises:
            UsageError: there are no types, the question has no place for the text, a number is too small, the address
                is none, or the environment variable of the key is not set.
        """
        if not self.definitions:
            raise UsageError("it needs a definition of each type, such as definitions = { LOC = 'towns and rivers' }")
        if "{text}" not in self.prompt:
            raise UsageError("the prompt has no {text}, where the text is to be")
        for name in ("documents_per_request", "parallel"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("retries", "wait", "longest_wait", "prompt_price", "completion_price"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} must not be negative, but is {getattr(self, name)}")
        if not self.timeout > 0:
            raise UsageError(f"timeout must be a number of seconds, not {self.timeout}")
        self._chat.check()

    @cached_property
    def _chat(self) -> Chat:
        return Chat(
            self.url,
            self.model,
            self.api_key_env,
            self.parameters,
            self.timeout,
            self.retries,
            self.wait,
            self.longest_wait,
        )

    @cached_property
    def _answers(self) -> AnswerCache:
        return AnswerCache(cache_folder("language-models") if self.cache is None else Path(self.cache))

    @cached_property
    def _lost(self) -> Unaligned:
        return Unaligned(self, self.unaligned)

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The entities in each document.

        Raises:
            SourceError: there is no server, it refuses every question, or has had no usable answer many times in a row.
        """
        questions = dict.fromkeys(
            _Question(name, document.text)
            for name in self.types
            for document in documents
            if document.text and not document.text.isspace()
        )
        answers: _Answers = {question: self._answers.get(self._key(question)) for question in questions}
        missing = [question for question, answer in answers.items() if answer is None]
        self.counters["cached"] += len(answers) - len(missing)
        self._works = self._works or len(missing) < len(answers)
        if missing:
            self._ask_all(missing, answers)
        return [self._votes(document, answers) for document in documents]

    def _votes(self, document: Document, answers: _Answers) -> Votes:
        named: list[tuple[str, str]] = []
        for name in self.types:
            answer = answers.get(_Question(name, document.text or ""), [])
            if answer is None:
                self._fail(document)
                return None
            most = _MOST_NAMED + 2 * len(document.tokens)
            self.counters["not in the text"] += len(answer[most:])
            named.extend((surface, name) for surface in answer[:most])
        spans, lost = place(
            document, named, occurrences=self.occurrences, alignment=self.alignment, similarity=self.similarity
        )
        self._lost.add(document, lost)
        return spans or (None if self.abstain else [])

    def _fail(self, document: Document) -> None:
        self.counters["failed documents"] += 1
        if not self._warned:
            self._warned = True
            message = (
                f"source {self.name!r}, document {document.id!r}: no usable answer from the language model "
                f"(last problem: {self._problem}); it abstains there and on all such documents, which are counted"
            )
            warnings.warn(TagweaveWarning(message), stacklevel=2)

    # Questions

    def _ask_all(self, questions: Sequence[_Question], answers: _Answers) -> None:
        """Ask what is not known yet, several questions at a time."""
        if self._gave_up:
            raise SourceError(self._gave_up)
        stop = Event()
        with ThreadPoolExecutor(self.parallel) as pool:
            futures = {pool.submit(self._ask, chunk, stop): chunk for chunk in self._chunks(questions)}
            try:
                for future in as_completed(futures):
                    self._note(futures[future], future, answers)
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _chunks(self, questions: Sequence[_Question]) -> list[list[_Question]]:
        """Questions that are asked together, all of one type."""
        size = self.documents_per_request
        by_type = [[question for question in questions if question.type == name] for name in self.types]
        return [group[first : first + size] for group in by_type for first in range(0, len(group), size)]

    def _ask(self, chunk: list[_Question], stop: Event) -> Outcome[list[list[str]]]:
        """Ask one request's worth; this runs in a thread of its own and keeps the answers."""
        read = _read_one if len(chunk) == 1 else partial(read_lists, count=len(chunk))
        outcome = self._chat.ask(self._prompt(chunk), read, stop)
        for question, answer in zip(chunk, outcome.value or (), strict=False):
            self._answers.put(self._key(question), answer)
        return outcome

    def _note(self, chunk: list[_Question], future: Future[Outcome[list[list[str]]]], answers: _Answers) -> None:
        """Take an answer in; give up when there have been too many failures in a row."""
        try:
            outcome = future.result()
        except TagweaveError as error:
            self._gave_up = str(error)
            raise
        self._count(outcome.counts)
        if outcome.value is not None:
            self._works = True
            self._failures_in_a_row = 0
            answers.update(zip(chunk, outcome.value, strict=True))
            return
        self._problem = outcome.problem
        self._failures_in_a_row = 0 if self._works and outcome.answered else self._failures_in_a_row + 1
        if self._failures_in_a_row >= _GIVE_UP:
            self._gave_up = f"{_GIVE_UP} questions in a row got no usable answer, the last: {outcome.problem}"
            raise SourceError(self._gave_up)

    def _count(self, counts: Counter[str]) -> None:
        self.counters.update(counts)
        self._owed += counts["prompt tokens"] * self.prompt_price + counts["completion tokens"] * self.completion_price
        whole = int(self._owed)
        if whole:
            self.counters["cost in millionths"] += whole
            self._owed -= whole

    def _key(self, question: _Question) -> str:
        """The name of an answer: it depends on the server, the model, the question, and how many go together."""
        prompt = self._prompt([question])
        return AnswerCache.key(self._chat.endpoint, self.model, self.parameters, prompt, self.documents_per_request)

    def _prompt(self, chunk: Sequence[_Question]) -> str:
        name, text = chunk[0]
        answer = _ONE
        if len(chunk) > 1:
            answer = _SEVERAL.format(count=len(chunk))
            numbered = (f'<text number="{number}">\n{each.text}\n</text>' for number, each in enumerate(chunk, start=1))
            text = "\n".join(numbered)
        values = {"type": name, "definition": self.definitions[name] or name, "answer": answer, "text": text}
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.prompt)


def _read_one(answer: str) -> list[list[str]]:
    return [read_list(answer)]
