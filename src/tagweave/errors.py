"""Everything that tagweave raises or warns about on purpose.

::

    TagweaveError
    ├── UsageError            a name, key or value that does not exist; exit code 2
    ├── DataError             the content of a file or corpus is wrong
    │   ├── FormatError       a line or record that cannot be read
    │   ├── AlignmentError    tokens, text, offsets or documents do not fit each other
    │   └── LabelError        a label or entity type that has no place
    ├── NotFittedError        a model is asked before it has learned
    ├── MissingExtraError     an optional package is not installed
    ├── SourceError           a source fails on a document, or yields what is no vote
    │   └── SourceTimeout     a source takes too long on a document
    ├── ShardError            a shard cannot be worked
    ├── StorageError          a saved folder is incomplete, changed or of another kind
    └── TrainingError         training cannot go on (a loss that is not finite, say)

    TagweaveWarning           something was repaired or left out, and the message says what

A message says what was met, where, and what to do. The command line prints it as one paragraph, without a traceback.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST_MESSAGE = 2000
_LONG_WORD = re.compile(r"(\S{100})\S{150,}(\S{50})")
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys instead of showing it: control characters other than tab and line feed, and signs that turn the
direction of writing round."""


def printable(text: str) -> str:
    r"""A text that can be printed, whatever a file has put into it: what a terminal would obey is shown by number.

    Names and ids come from files of others. An escape sequence in one could colour, erase or rewrite what stands on the
    screen, or set the title of the window. Text of JSON remains the same JSON.

    >>> printable("\x1b[2Jd1\r\n")
    '\\u001b[2Jd1\\u000d\n'
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shortened(message: str) -> str:
    """A message that people can read, whatever a file has put into it.

    The middle of what is endless is left out, and what a terminal would obey is shown by number.

    >>> shortened("no tag after the token 'xyz'")
    "no tag after the token 'xyz'"
    >>> len(shortened("x" * 1_000_000)), len(shortened("word " * 1_000_000))
    (153, 2003)
    """
    if len(message) > _LONGEST_MESSAGE:
        message = _LONG_WORD.sub(r"\1...\2", message)
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:1500]}...{message[-500:]}"
    return printable(message)


class TagweaveError(Exception):
    """Base of all errors that a user can cause; `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message))


class UsageError(TagweaveError):
    """A name, key or value that does not exist."""

    exit_code = 2


class DataError(TagweaveError):
    """The content of a file or corpus is wrong."""


class FormatError(DataError):
    """A line or record that cannot be read."""


class AlignmentError(DataError):
    """Tokens, text, offsets or documents do not fit each other."""


class LabelError(DataError):
    """A label or entity type that has no place."""


class NotFittedError(TagweaveError):
    """A model is asked before it has learned."""


class MissingExtraError(TagweaveError):
    """An optional package is not installed; the message names the command that installs it."""


class SourceError(TagweaveError):
    """A source fails on a document, or yields what is no vote; the message names both."""


class SourceTimeout(SourceError):
    """A source takes too long on a document; the message names both."""


class ShardError(TagweaveError):
    """A shard cannot be worked; the message names it."""


class StorageError(TagweaveError):
    """A saved folder is incomplete, changed, or of another kind."""


class TrainingError(TagweaveError):
    """Training cannot go on."""


class TagweaveWarning(UserWarning):
    """Something was repaired or left out; the message says what and how often."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message))


def unknown_name(what: str, name: str, known: Iterable[str]) -> UsageError:
    """An error for a name that does not exist, with the nearest one that does.

    >>> str(unknown_name("label model", "hmn", ["hmm", "chmm"]))
    "no label model is called 'hmn'. Did you mean 'hmm'? Known: chmm, hmm"
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    suggestion = f" Did you mean {close[0]!r}?" if close else ""
    return UsageError(f"no {what} is called {name!r}.{suggestion} Known: {', '.join(names) or 'none'}")
