"""Checks in processes of their own: without packages, without a network, and of how much memory they take."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Sequence
from pathlib import Path

import tiny_encoder
from cases.harness import Check, check
from tagweave.tagger import Tagger

LONELY = """
import socket, sys
class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in {packages!r} else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)
def refuse(*_, **__):
    raise OSError("there is no network here")
sys.meta_path[:] = map(Hiding, sys.meta_path)
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
"""
"""A machine without some packages, and without a network."""

PEAK = """
import atexit, resource
atexit.register(lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""

STEPS = {
    "read": "import tagweave, tagweave.sources; corpus = tagweave.read('in.jsonl')",
    "vote": "corpus = tagweave.annotate(corpus, [tagweave.sources.create_source("
    "'regex', {'name': 'names', 'patterns': 'Ada|Bo', 'type': 'PER'})])",
    "label": "labelled = tagweave.HMM().fit(corpus).predict(corpus)",
    "evaluate": "assert tagweave.evaluate(corpus, labelled).f1 > 0",
    "write": "[tagweave.write(labelled, f'out.{ending}') for ending in ('jsonl', 'conll', 'parquet', 'pubtator')]",
}
RECORDS = [
    {"id": "a", "text": "Ada saw Oslo", "entities": [[0, 3, "PER"]], "sources": {"old": [[0, 3, "PER"]]}},
    {"id": "b", "text": "Bo came", "entities": [[0, 2, "PER"]], "sources": {"old": [[0, 2, "PER"]]}},
]


def ran(item: Check, code: str, peak: bool = False) -> str:
    """Runs code in a folder with a file; what it prints, and its peak of memory in KiB on a last line if wanted."""
    lines = "".join(f"{json.dumps(record)}\n" for record in RECORDS)
    (item.scratch / "in.jsonl").write_text(lines)
    (item.scratch / "in.spacy").write_bytes(zlib.compress(b"\x80"))
    if peak:
        code = f"{PEAK}\n{code}"
    environment = {**os.environ, "TAGWEAVE_CACHE": str(item.scratch / "cache"), "OMP_NUM_THREADS": "1"}
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        environment.pop(name, None)
    command = [sys.executable, "-W", "ignore", "-c", code]
    ended = subprocess.run(command, cwd=item.scratch, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def lonely(packages: Sequence[str]) -> str:
    """Code that takes packages and the network away."""
    return LONELY.format(packages=set(packages) or {""})


@check("works_without")
def works_without(item: Check) -> None:
    """The steps end well, one after the other."""
    steps = "\n".join(STEPS[name] for name in item.expected["steps"])
    assert "done" in ran(item, f"{lonely(item.expected['packages'])}\n{steps}\nprint('done')")


@check("needs_an_extra")
def needs_an_extra(item: Check) -> None:
    """Each code ends in the error that names what is to be installed."""
    _raises(item, "MissingExtraError", item.expected["packages"])


@check("missing_model")
def missing_model(item: Check) -> None:
    """Each code ends in an error that tells where the model was looked for, and how to get it."""
    _raises(item, "TagweaveError", ())


def _raises(item: Check, kind: str, packages: Sequence[str]) -> None:
    for code in item.expected["codes"]:
        attempt = f"try:\n    {code}\nexcept tagweave.{kind} as error:\n    print(error)"
        said = " ".join(ran(item, f"{lonely(packages)}\n{STEPS['read']}\n{attempt}").split())
        assert re.search(item.expected["mentions"], said), (code, said)


@check("only_lower_bounds")
def only_lower_bounds(item: Check) -> None:
    """What is needed to run is bounded from below, so that nobody gets what is too old, and not from above."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["bert"], *extras["spacy"]]
    for requirement in needed:
        if not requirement.startswith("tagweave"):
            assert re.search(r">=\d", requirement), requirement
            assert not re.search(r"==|<(?!=)|<=|~=", requirement.partition(";")[0]), requirement


def encoder(item: Check) -> str:
    """The name of a tiny encoder."""
    return tiny_encoder.build(item.scratch / "encoder", ["Ada", "saw", "Oslo"])


@check("memory_of_predicting")
def memory_of_predicting(item: Check) -> None:
    """The peak after many documents is that after a tenth of them, or a little more."""
    words = item.scratch / "words.jsonl"
    words.write_text('{"id": "a", "tokens": ["Ada", "saw", "Oslo"], "entities": [[0, 1, "PER"]]}\n')
    code = f"import tagweave\ntagger = tagweave.Tagger(encoder={encoder(item)!r}, epochs=1, warmup=0.0)\n"
    ran(item, f"{code}tagger.fit(tagweave.read('words.jsonl')).save('tagger')")
    assert Tagger.load(item.scratch / "tagger")
    peaks = [_predicting(item, count) for count in item.expected["documents"]]
    assert peaks[1] <= item.expected["ratio"] * peaks[0], peaks


def _predicting(item: Check, count: int) -> int:
    lines = (json.dumps({"id": str(number), "tokens": ["Ada", "saw", "Oslo"]}) for number in range(count))
    (item.scratch / "many.jsonl").write_text("".join(f"{line}\n" for line in lines))
    code = "import sys, tagweave.cli\nsys.argv = 'tagweave -q predict tagger many.jsonl --out out.jsonl'.split()\n"
    peak = int(ran(item, f"{code}tagweave.cli.main()", peak=True).split()[-1])
    assert (item.scratch / "out.jsonl").read_bytes().count(b"\n") == count
    return peak


@check("memory_of_training")
def memory_of_training(item: Check) -> None:
    """The peak with a very long document is not much more than that without it."""
    code = (
        "import tagweave\n"
        "documents = [tagweave.Document(str(n), ['Ada'] * length, entities=[tagweave.Span(0, 1, 'PER')])\n"
        "             for n, length in enumerate({lengths})]\n"
        "corpus = tagweave.Corpus.from_documents(documents)\n"
        "tagger = tagweave.Tagger(encoder={encoder!r}, epochs=1, warmup=0.0, empty_share=1.0)\n"
        "tagger.fit(corpus, corpus).predict(corpus)\n"
    )
    short = [item.expected["words"]] * item.expected["documents"]
    name = encoder(item)
    peaks = [
        int(ran(item, code.format(lengths=lengths, encoder=name), peak=True).split()[-1])
        for lengths in (short, [*short, item.expected["long"]])
    ]
    assert peaks[1] <= item.expected["ratio"] * peaks[0], peaks
