"""How fast phrases are found: tagweave's `Dictionary`, spaCy's `PhraseMatcher` and skweak's `GazetteerAnnotator`.

    python benchmarks/dictionaries.py --phrases companies.json.gz --texts train.conll.gz --skweak-python env/bin/python
    python benchmarks/dictionaries.py --made 10000 1000000 --tools tagweave

Each tool gets the same phrases and the same tokens, in a process of its own. `load` is the time from the file of
phrases to a matcher that is ready, `memory` the most that the process had taken by then, and `tokens/s` the best of
several runs from tokens to spans without overlaps, the longest first. For the two tools on top of spaCy, `matching` is
the speed without the making of spaCy's documents from the tokens. Seconds are seconds of the processor, so that other
work on the machine counts little.

skweak needs an environment of its own: python -m venv skweak-env && skweak-env/bin/pip install skweak
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

TOOLS = ("tagweave", "spacy", "skweak")


class Runs(NamedTuple):
    """What is timed: `find` on what `make`, if there is any, makes of each of the texts."""

    texts: list[Any]
    make: Callable[[Any], Any] | None
    find: Callable[[list[Any]], int]


# What is measured; this part also runs where tagweave is not installed.


def lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as handle:
        yield from (line.rstrip("\n") for line in handle)


def with_tagweave(phrases: Path, texts: Path, case: str) -> Iterator[Any]:
    from tagweave.sources import Dictionary

    yield
    source: Any = Dictionary("phrases", (phrases,), type="X", case=case)  # type: ignore[arg-type]
    source.load()
    yield
    yield Runs(
        [document_of(str(number), line) for number, line in enumerate(lines(texts))],
        None,
        lambda documents: sum(len(votes) for votes in source.annotate(documents)),
    )


def document_of(name: str, line: str) -> Any:  # noqa: ANN401
    """A document as the sources of tagweave get it, with places in the text."""
    from tagweave.corpus import Document

    tokens, start, places = line.split(" "), 0, []
    for token in tokens:
        places.append((start, start + len(token)))
        start += len(token) + 1
    return Document(name, tuple(tokens), line, tuple(places))


def with_spacy(phrases: Path, texts: Path, case: str) -> Iterator[Any]:
    import spacy
    from spacy.matcher import PhraseMatcher
    from spacy.tokens import Doc
    from spacy.util import filter_spans

    yield
    nlp = spacy.blank("en")
    matcher = PhraseMatcher(nlp.vocab, attr="ORTH" if case == "exact" else "LOWER")
    for phrase in lines(phrases):
        matcher.add("X", [nlp.make_doc(phrase)])
    yield
    yield Runs(
        [line.split(" ") for line in lines(texts)],
        lambda words: Doc(nlp.vocab, words=words),
        lambda docs: sum(len(filter_spans(matcher(doc, as_spans=True))) for doc in docs),
    )


def with_skweak(phrases: Path, texts: Path, case: str) -> Iterator[Any]:
    import spacy
    from skweak.gazetteers import GazetteerAnnotator, Trie
    from spacy.tokens import Doc

    yield
    nlp = spacy.blank("en")
    trie = Trie()
    for phrase in lines(phrases):
        trie.add([token.text for token in nlp.make_doc(phrase)])
    source = GazetteerAnnotator("X", {"X": trie}, case_sensitive=case == "exact", additional_checks=False)
    yield
    yield Runs(
        [line.split(" ") for line in lines(texts)],
        lambda words: Doc(nlp.vocab, words=words),
        lambda docs: sum(len(source(doc).spans["X"]) for doc in docs),
    )


def most_memory() -> int:
    """The most memory that this process has taken, in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


def measure(tool: str, phrases: Path, texts: Path, case: str, repeats: int) -> dict[str, float]:
    steps = {"tagweave": with_tagweave, "spacy": with_spacy, "skweak": with_skweak}[tool](phrases, texts, case)
    next(steps)
    begin = time.process_time()
    next(steps)
    loaded, memory = time.process_time() - begin, most_memory()
    runs: Runs = next(steps)
    tokens = sum(line.count(" ") + 1 for line in lines(texts))
    making, finding = [], []
    for _ in range(repeats):
        begin = time.process_time()
        ready = list(map(runs.make, runs.texts)) if runs.make else runs.texts
        making.append(time.process_time() - begin)
        begin = time.process_time()
        spans = runs.find(ready)
        finding.append(time.process_time() - begin)
    speed = tokens / (min(making) + min(finding))
    return {"load": loaded, "memory": memory, "speed": speed, "matching": tokens / min(finding), "spans": spans}


# What hands out the work; this part runs with tagweave.


def made_up(count: int, folder: Path) -> tuple[Path, Path]:
    """Phrases of one to four made-up words, and 4,000 texts of fifty of the same words."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(3, 8))) for _ in range(60_000)]
    texts, phrases = folder / "texts.txt", folder / f"{count}.txt"
    texts.write_text("".join(" ".join(chance.choices(words, k=50)) + "\n" for _ in range(4000)), encoding="utf-8")
    with phrases.open("w", encoding="utf-8") as handle:
        for _ in range(count):
            handle.write(" ".join(chance.choices(words, k=chance.randint(1, 4))) + "\n")
    return phrases, texts


def given(phrases: Path, texts: Path, count: int, folder: Path) -> tuple[Path, Path]:
    """The phrases of a list, each once and without its type, and the tokens of a corpus, a document a line."""
    from tagweave import read
    from tagweave.sources.phrase_files import read_phrases

    listed = dict.fromkeys(" ".join(phrase.text.split()) for phrase in read_phrases(phrases))
    kept = list(listed)[:count] if count else list(listed)
    (folder / "phrases.txt").write_text("".join(phrase + "\n" for phrase in kept), encoding="utf-8")
    words = ([word for token in document.tokens for word in token.split()] for document in read(texts))
    (folder / "texts.txt").write_text("".join(" ".join(line) + "\n" for line in words if line), encoding="utf-8")
    return folder / "phrases.txt", folder / "texts.txt"


def measured(python: str, tool: str, phrases: Path, texts: Path, case: str, repeats: int) -> dict[str, float]:
    """What one tool needs, measured in a process of its own."""
    command = [python, __file__, "--measure", tool, "--phrases", phrases, "--texts", texts]
    command += ["--case", case, "--repeats", str(repeats)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{tool} fails:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phrases", type=Path, help="a list of phrases in any format of dictionaries")
    parser.add_argument("--texts", type=Path, help="a corpus in any format of tagweave")
    parser.add_argument("--limit", type=int, default=0, help="take only the first phrases of the list")
    parser.add_argument("--made", type=int, nargs="+", default=[], help="so many made-up phrases, instead of a list")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS)
    parser.add_argument("--case", nargs="+", choices=("exact", "ignore"), default=("exact", "ignore"))
    parser.add_argument("--repeats", type=int, default=5, help="the best of so many runs counts")
    parser.add_argument("--skweak-python", help="the Python of an environment that has skweak")
    parser.add_argument("--measure", choices=TOOLS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.measure:
        print(json.dumps(measure(options.measure, options.phrases, options.texts, options.case[0], options.repeats)))
        return
    from tagweave.report import Table

    pythons = {"tagweave": sys.executable, "spacy": sys.executable, "skweak": options.skweak_python}
    rows: list[tuple[str | int | float | None, ...]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.made:
            inputs = [made_up(count, folder) for count in options.made]
        else:
            inputs = [given(options.phrases, options.texts, options.limit, folder)]
        for phrases, texts in inputs:
            count = sum(1 for _ in lines(phrases))
            for case in options.case:
                first = 0.0
                for tool in options.tools:
                    python = pythons[tool]
                    if python is None:
                        rows.append((f"{tool} (give --skweak-python)", case, count, *[None] * 6))
                        continue
                    found = measured(python, tool, phrases, texts, case, options.repeats)
                    first = first or found["speed"]
                    needs = (found["load"], found["memory"], int(found["spans"]))
                    rows.append((tool, case, count, *needs, found["speed"], found["speed"] / first, found["matching"]))
                    print(f"{tool}, {case}, {count} phrases: {found['speed']:.0f} tokens/s", file=sys.stderr)
    columns = ("tool", "case", "phrases", "load, s", "memory, MB", "spans", "tokens/s", "ratio", "matching")
    print(Table("", columns, tuple(rows), decimals=(0, 0, 0, 1, 0, 0, 0, 2, 0)).text())


if __name__ == "__main__":
    main()
