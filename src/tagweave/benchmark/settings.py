"""The settings of every system, the same for all data sets; what is not named here has its default."""

import json
from typing import Any

from tagweave.encoder import locate

ALTERNATE: dict[str, Any] = {"rounds": 3, "patience": 2}

LABEL_MODELS: dict[str, dict[str, Any]] = {
    "swellshark-np": {"candidates": "noun-phrases", "propensity": "class"},
}
"""By name; models on embeddings also get `embedding_layers`."""

LABEL_MODEL_KINDS = {"mv": "majority-vote", "swellshark-np": "swellshark"}
"""What a name of the benchmark stands for that is no label model's own."""

TAGGERS: dict[str, dict[str, Any]] = {
    "bert": {"epochs": 3},
    "bert-crf": {"epochs": 3, "output": "crf"},
    "bond": {"epochs": 3},
    "autoner": {"epochs": 3},
}
"""By name; `bert-crf` is the kind `bert` with another output."""

TAGGER_KINDS = {"bert-crf": "bert"}
"""The same for taggers."""

SUPERVISED: dict[str, Any] = {"epochs": 6, "frozen_layers": 0, "empty_share": 1.0}
"""Beside those of the tagger, where it learns from gold. Gold is not noisy, so all layers may read all of it, and more
often; on votes that spoils more than it helps."""

DEV_ONLY: dict[str, Any] = {**SUPERVISED, "epochs": 10}
FINE_TUNED: dict[str, Any] = {**SUPERVISED, "epochs": 5, "learning_rate": 1e-4}
"""Epochs are more where there are few documents, and fixed, as there is nothing left to choose them by. Fine-tuning
starts from what is good already: a quarter of the usual learning rate keeps more of it (half of dev held out)."""


def embedding_layers(encoder: str) -> tuple[int, ...]:
    """The layers of an encoder whose outputs make an embedding: a third of the way up, two thirds, and the last.

    >>> embedding_layers("default")
    (2, 4, 6)
    """
    config = json.loads((locate(encoder) / "config.json").read_text(encoding="utf-8"))
    depth = int(config["num_hidden_layers"])
    return tuple(sorted({max(1, round(depth * part / 3)) for part in (1, 2, 3)}))
