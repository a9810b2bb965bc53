import numpy as np
import pytest

from label_models.simulated_votes import simulate
from tagweave.label_models import HMM, DawidSkene, NaiveBayes
from tagweave.label_models.confusion import ConfusionModel
from tagweave.soft_labels import SoftLabels

TYPES = ("LOC", "PER")


@pytest.mark.parametrize("kind", [HMM, DawidSkene, NaiveBayes])
@pytest.mark.parametrize(("trust", "weight"), [(0.4, 1.0), (0.0, 0.3), (0.4, 0.3), (1.0, 0.3)])
def test_the_objective_never_falls_where_votes_are_weighed_beside_a_tagger(
    kind: type[ConfusionModel], trust: float, weight: float
) -> None:
    simulated = simulate((0.8, 0.1, 0.1), (0.9, 0.7, 0.6), (0.9, 0.8, 0.7), 2000, seed=3)
    corpus = simulated.corpus(TYPES)
    said = np.random.default_rng(0).dirichlet(np.full(5, 0.4), 2000).astype(np.float32)
    taught = corpus.with_source("tagger", SoftLabels(TYPES, corpus.offsets, said))
    model = kind(trust=trust, weight=weight, silence="always", iterations=30, tolerance=0, strength=0.1).fit(taught)
    history = [record["objective"] for record in model.history_]
    assert len(history) > 3
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in zip(history, history[1:], strict=False))
