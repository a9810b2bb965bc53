"""The vote that first values and priors come from."""

import numpy as np

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.label_models.anchors import anchor_labels
from tagweave.soft_labels import SoftLabels


def test_the_anchor_takes_a_tagger_as_it_comes() -> None:
    documents = [Document(f"d{i}", ["Oslo", "is", "far"], sources={"any": [Span(2, 3, "ENT")]}) for i in range(20)]
    corpus = Corpus.from_documents(documents, ("LOC", "PER"), {"ENT": ("LOC", "PER")})
    said = np.full((60, 5), 0.01, np.float32)
    said[:, 0] = 0.96
    said[0] = 0.36, 0.61, 0.01, 0.01, 0.01
    labels = anchor_labels(corpus.with_source("tagger", SoftLabels(("LOC", "PER"), corpus.offsets, said)), "bio")
    assert labels[0] == 1, "not what is left of it where it is believed by half"
    assert labels[3] == 0
