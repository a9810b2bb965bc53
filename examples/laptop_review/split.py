"""Divide the training sentences with votes into those of dev (`dev_ids.txt`) and the rest.

python examples/laptop_review/split.py ALL.jsonl TRAIN.jsonl DEV.jsonl
"""

import sys
from pathlib import Path

import numpy as np

import tagweave

DEV = frozenset((Path(__file__).parent / "dev_ids.txt").read_text(encoding="utf-8").split())


def main(whole: str, train: str, dev: str) -> None:
    """Read one file and write two."""
    corpus = tagweave.read(whole)
    held_out = np.array([name in DEV for name in corpus.id_list])
    tagweave.write(corpus.subset(np.flatnonzero(~held_out)), train)
    tagweave.write(corpus.subset(np.flatnonzero(held_out)), dev)


if __name__ == "__main__":
    main(*sys.argv[1:])
