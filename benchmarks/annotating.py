"""How fast `annotate_file` is with one process and with two, on sentences and rules that are made up.

    python benchmarks/annotating.py --documents 20000

The rules are plain Python that looks at all stretches of up to five tokens, as slow as rules often are; `--light` takes
one that looks at each token once, which shows what reading, sending and writing cost.
"""

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path

from tagweave.annotating import annotate_file

RULES = """
from tagweave.sources import labeling_function

ENDINGS = tuple("ak el im on ur est ing".split())

@labeling_function("NAME")
def names(document):
    tokens = document.tokens
    for start in range(len(tokens)):
        for end in range(start + 1, min(start + 6, len(tokens) + 1)):
            words = tokens[start:end]
            if all(word.istitle() for word in words) and any(word.lower().endswith(ENDINGS) for word in words):
                yield start, end

@labeling_function("THING")
def things(document):
    tokens = [word.lower() for word in document.tokens]
    for start in range(len(tokens)):
        for end in range(start + 1, min(start + 6, len(tokens) + 1)):
            phrase = " ".join(tokens[start:end])
            if sum(map(ord, phrase)) % 97 == 0 and phrase.count("e") > 3:
                yield start, end
"""

LIGHT_RULE = """
from tagweave.sources import labeling_function

@labeling_function("NAME")
def names(document):
    return [(i, i + 1) for i, word in enumerate(document.tokens) if word.istitle()]
"""


def write_sentences(path: Path, documents: int, seed: int = 0) -> None:
    """Sentences of 10 to 40 made-up words."""
    chance = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstv" for b in ("a", "el", "im", "on", "ur", "est", "e")]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(5000)]
    words += [word.title() for word in words[:1500]]
    with path.open("w", encoding="utf-8") as handle:
        for number in range(documents):
            record = {"id": f"s{number}", "tokens": chance.choices(words, k=chance.randint(10, 40))}
            handle.write(json.dumps(record) + "\n")


def speed(folder: Path, documents: int, processes: int) -> float:
    """Documents a second, with the start of the processes."""
    begin = time.perf_counter()
    annotate_file(folder / "in.jsonl", folder / "rules.py", folder / f"{processes}.jsonl", processes=processes)
    return documents / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts")
    parser.add_argument("--light", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sentences(folder / "in.jsonl", arguments.documents)
        (folder / "rules.py").write_text(LIGHT_RULE if arguments.light else RULES, encoding="utf-8")
        best = dict.fromkeys(arguments.processes, 0.0)
        for _ in range(arguments.repeats):
            for count in best:
                best[count] = max(best[count], speed(folder, arguments.documents, count))
        assert len({(folder / f"{count}.jsonl").read_bytes() for count in best}) == 1, "the results differ"
    print(f"{arguments.documents} documents, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for count, found in best.items():
        print(f"{count} processes: {found:.0f} documents/s, ratio {found / best[arguments.processes[0]]:.2f}")


if __name__ == "__main__":
    main()
