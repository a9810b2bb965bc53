from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny_encoder
from tagweave.annotations import Span
from tagweave.chain import log_partition
from tagweave.corpus import Corpus, Document
from tagweave.errors import TagweaveWarning, UsageError
from tagweave.evaluation import evaluate
from tagweave.label_models import HMM, ConditionalHMM, ConditionalIID
from tagweave.label_models.anchors import Counts
from tagweave.label_models.conditional_data import ConditionalData
from tagweave.label_models.conditional_network import Batch, ConditionalNetwork, Shape
from tagweave.label_models.confusion import WEIGHT
from tagweave.labels import LabelSet
from tagweave.observations import observe
from tagweave.soft_labels import SoftLabels

NAMES = "Ada Bo Cy Dee Eve Flo Gil Hal Ida Jo".split()
OTHERS = "the old cat saw a red house near some trees while it was raining on us".split()


@pytest.fixture(scope="module", autouse=True)
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAGWEAVE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield tiny_encoder.build(tmp_path_factory.mktemp("tiny"), [*NAMES, *OTHERS])


def sentences(count: int, known: int, seed: int = 0) -> Corpus:
    """Sentences with names of which a source knows the first `known`, and another only the first one."""
    chance = np.random.default_rng(seed)
    made = []
    for number in range(count):
        tokens = [str(chance.choice(OTHERS)) for _ in range(8)]
        place, name = int(chance.integers(0, 8)), int(chance.integers(0, len(NAMES)))
        tokens[place] = NAMES[name]
        gold = [Span(place, place + 1, "PER")]
        sources = {"list": gold if name < known else [], "rule": gold if name == 0 else []}
        made.append(Document(f"d{number}", tokens, entities=gold, sources=sources))
    return Corpus.from_documents(made, ["PER"])


def make(encoder: str, kind: type = ConditionalHMM, **settings: Any) -> Any:  # noqa: ANN401
    return kind(**{"encoder": encoder, "layers": (0,), "context": 0, "learning_rate": 0.02, "pull": 1e-3, **settings})


def recall(predicted: Corpus, gold: Corpus) -> float:
    pairs = zip(predicted, gold, strict=True)
    return float(np.mean([[s[:3] for s in a.entities or ()] == [s[:3] for s in b.entities or ()] for a, b in pairs]))


def statistics(labels: LabelSet, sources: int, chance: np.random.Generator) -> Counts:
    size = len(labels)
    moves = chance.random((size, size)) * labels.legal_moves
    start = chance.random(size) * labels.legal_starts
    return Counts(start, moves, chance.random((sources, size, size))).normalised()


def network(labels: LabelSet, **changes: Any) -> tuple[ConditionalNetwork, Counts]:  # noqa: ANN401
    given = {
        "width": 3,
        "context": 1,
        "chained": True,
        "by_move": True,
        "token_emissions": False,
        "edge": 0.1,
    }
    counted = statistics(labels, 2, np.random.default_rng(0))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        scale = np.array([[0.1, 0.0, -0.2], [1.0, 2.0, 0.5]], np.float32)
        made = ConditionalNetwork(Shape(**{**given, **changes}), labels, counted, scale)
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    return made.double(), counted


def batch(labels: LabelSet, own: float = 1.0, missed: float | None = 0.2) -> Batch:
    chance = np.random.default_rng(1)
    said = np.eye(len(labels))[chance.integers(0, len(labels), (5, 2))]
    return Batch(
        chance.normal(size=(7, 3)).astype(np.float16),
        np.array([2, 3, 4, 0, 1]),
        np.array([0, 3, 3, 5]),
        own,
        1.0,
        missed,
        torch.from_numpy(np.log(chance.random((5, len(labels))))),
        said.astype(np.float32),
        np.array([True, False, True, True, False]),
    )


@pytest.mark.parametrize("state_space", ["io", "bio"])
def test_potentials_are_distributions_without_silence(state_space: Any) -> None:  # noqa: ANN401
    labels = LabelSet(("A", "B"), state_space)
    made, _ = network(labels)
    start, moves, _ = made(batch(labels, missed=None))
    np.testing.assert_allclose(moves.exp().sum(dim=2).detach(), 1, atol=1e-6)
    assert (moves.exp().detach().numpy()[:, ~labels.legal_moves] == 0).all()
    np.testing.assert_allclose(start[0].detach(), moves[0, 0].detach())
    assert not start[1].any(), "an empty document has no start"


@pytest.mark.parametrize("chained", [True, False])
@pytest.mark.parametrize("own", [0.0, 0.3])
def test_what_a_tagger_expects_takes_the_place_of_moves_but_not_of_the_price_of_silence(
    own: float, chained: bool
) -> None:
    labels = LabelSet(("A", "B"))
    made, _ = network(labels, chained=chained, by_move=False)
    whole, shared = made(batch(labels)), made(batch(labels, own))
    expected = made(batch(labels, missed=None)).transitions
    legal = torch.from_numpy(labels.legal_moves)
    taken = (whole.transitions - shared.transitions)[:, legal]
    np.testing.assert_allclose(taken.detach(), ((1 - own) * expected)[:, legal].detach(), atol=1e-6)
    assert (shared.transitions[:, ~legal] == -torch.inf).all()
    assert torch.isfinite(torch.autograd.grad(shared.transitions[:, legal].sum(), made.bias)[0]).all()


def test_before_it_learns_it_is_the_anchor() -> None:
    labels = LabelSet(("A",))
    made, counted = network(labels)
    for parameter in made.parameters():
        torch.nn.init.zeros_(parameter)
    np.testing.assert_allclose(
        made(batch(labels, missed=None)).transitions[2].exp().detach(), counted.transitions, atol=1e-6
    )


def test_silence_costs_once_for_each_entity_and_at_its_edges() -> None:
    labels = LabelSet(("A",))
    made, _ = network(labels)
    quiet, priced = (made(batch(labels, missed=missed)).transitions for missed in (None, 0.2))
    extra = (priced - quiet).exp().nan_to_num(1).detach().numpy()
    outside, begin, inside = 0, 1, 2
    np.testing.assert_allclose(extra[0, outside], [1, 0.2, 1], atol=1e-6)
    np.testing.assert_allclose(extra[1, begin], [1, 1, 0.1], atol=1e-6)
    np.testing.assert_allclose(extra[2, inside], [1, 0.2, 0.1], atol=1e-6)
    np.testing.assert_allclose(extra[4, begin], [1, 1, 0.1], atol=1e-6)
    assert extra[3, outside, inside] == 1, "an illegal move stays illegal at any price"


def test_what_is_never_missed_is_as_good_as_impossible(encoder: str) -> None:
    train = sentences(20, known=4)
    found = make(encoder, epochs=1, missed=0.0).fit(train).predict(train)
    assert all(document.entities == [] or document.sources["list"] for document in found)
    assert np.isfinite(make(encoder, epochs=1, missed=0.0).fit(train).predict_proba(train).probabilities).all()


def test_neighbours_are_those_of_the_same_document() -> None:
    labels = LabelSet(("A",))
    made, _ = network(labels)
    given = batch(labels)
    before = made(given).transitions
    changed = given._replace(features=given.features.copy())
    changed.features[given.rows[3]] += 1
    differs = (made(changed).transitions != before).any(dim=2).any(dim=1)
    assert differs.tolist() == [False, False, False, True, True]


@pytest.mark.parametrize("token_emissions", [False, True])
def test_the_likelihood_is_the_sum_over_all_label_sequences(token_emissions: bool) -> None:
    labels = LabelSet(("A",))
    made, _ = network(labels, token_emissions=token_emissions)
    potentials = [p.detach().numpy() for p in made(batch(labels))]
    found = log_partition(*potentials, [0, 3, 3, 5])
    for sentence, (first, last) in enumerate([(0, 3), (3, 3), (3, 5)]):
        total = 0.0
        for path in product(range(3), repeat=last - first):
            score = sum(potentials[2][first + t, z] for t, z in enumerate(path))
            score += sum(potentials[1][first + t + 1, a, b] for t, (a, b) in enumerate(pairwise(path)))
            total += np.exp(score + (potentials[0][sentence, path[0]] if path else 0))
        np.testing.assert_allclose(np.exp(found[sentence]), total, rtol=1e-9)


@pytest.mark.parametrize("kind", [ConditionalHMM, ConditionalIID])
def test_it_finds_what_all_sources_miss(encoder: str, kind: type) -> None:
    train, test = sentences(400, known=7), sentences(100, known=0, seed=1)
    model = make(encoder, kind, epochs=10, batch_tokens=200).fit(train)
    assert recall(HMM().fit(train).predict(test), test) < 0.2
    assert recall(model.predict(test), test) > 0.5


def test_the_loss_falls_and_dev_chooses(encoder: str) -> None:
    train, dev = sentences(200, known=7), sentences(60, known=2, seed=2)
    model = make(encoder, epochs=6).fit(train, dev)
    losses = [record["loss"] for record in model.history_ if "loss" in record]
    assert losses[-1] < losses[0]
    scores = [record["f1"] for record in model.history_]
    assert evaluate(dev, model.predict(dev), bootstrap=0).f1 >= max(scores)
    assert set(model.chosen_) == {"missed", "trust", "weight"}


@pytest.mark.parametrize("emissions", ["shared", "token"])
def test_votes_weigh_as_much_as_is_set(encoder: str, emissions: str) -> None:
    train, test = sentences(60, known=7), sentences(20, known=7, seed=1)
    model = make(encoder, epochs=1, missed=None, emissions=emissions, silence="always").fit(train)
    silent = Corpus.from_documents([replace(d, sources={"list": [], "rule": []}) for d in test], ["PER"])
    said = {}
    for weight in (0.0, 0.3, 1.0):
        model.chosen_["weight"] = weight
        said[weight] = np.abs(model.predict_proba(test).probabilities - model.predict_proba(silent).probabilities).max()
    assert said[0.0] < 1e-6 < said[0.3] < said[1.0]


def test_dev_weighs_votes_of_sources_that_repeat_each_other(encoder: str) -> None:
    def babbling(count: int, seed: int) -> Corpus:
        """Three sources that say the same: half of the names, and every cat."""
        made = []
        for document in sentences(count, known=5, seed=seed):
            cats = [Span(t, t + 1, "PER") for t, token in enumerate(document.tokens) if token == "cat"]
            said = [*(document.sources["list"] or ()), *cats]
            made.append(replace(document, sources={"list": said, "copy": said, "echo": said}))
        return Corpus.from_documents(made, ["PER"])

    train, dev = babbling(300, 0), babbling(100, 1)
    model = make(encoder, epochs=4, batch_tokens=200).fit(train, dev)
    chosen = model.chosen_["weight"]
    scores = {}
    for weight in (chosen, *WEIGHT):
        model.chosen_["weight"] = weight
        scores[weight] = evaluate(dev, model.predict(dev), bootstrap=0).f1
    assert scores[chosen] == max(scores.values())


def test_without_dev_all_votes_of_a_token_count_as_one(encoder: str) -> None:
    train = sentences(60, known=7)
    votes = [sum(bool(spans) for spans in document.sources.values()) for document in train]
    mean = np.mean([number for number in votes if number])
    assert 1 < mean < 2, "documents have one entity, and some of them two votes for it"
    said = np.random.default_rng(0).dirichlet(np.full(3, 0.5), int(train.offsets[-1])).astype(np.float32)
    taught = train.with_source("tagger", SoftLabels(("PER",), train.offsets, said))
    doubtful = [
        replace(d, sources={n: [s._replace(score=0.6) for s in v or ()] for n, v in d.sources.items()}) for d in train
    ]
    for corpus in (train, taught, Corpus.from_documents(doubtful, ["PER"])):
        assert make(encoder, epochs=1).fit(corpus).chosen_["weight"] == pytest.approx(1 / mean)
    assert make(encoder, epochs=1, weight=0.7).fit(train).chosen_["weight"] == 0.7
    silent = Corpus.from_documents([replace(d, sources={"list": [], "rule": []}) for d in train], ["PER"])
    with pytest.warns(TagweaveWarning, match="PER"):
        assert make(encoder, epochs=1).fit(silent).chosen_["weight"] == 1


@pytest.mark.parametrize("weight", [-0.1, 1.5])
def test_weight_must_be_a_share(encoder: str, weight: float) -> None:
    with pytest.raises(UsageError, match="weight is .*from 0 to 1"):
        make(encoder, weight=weight).fit(sentences(5, known=5))


def test_it_stops_when_dev_gains_nothing(encoder: str) -> None:
    train, dev = sentences(40, known=10), sentences(20, known=10, seed=2)
    model = make(encoder, epochs=30, patience=2, learning_rate=1e-6).fit(train, dev)
    assert sum("loss" in record for record in model.history_) <= 4


@pytest.mark.parametrize("sharpening", [0.0, 1.0])
def test_settings_near_the_paper_run(encoder: str, sharpening: float, tmp_path: Path) -> None:
    train = sentences(60, known=7)
    paper = {"layers": (-1,), "by_move": True, "emissions": "token", "missed": None, "observation_smoothing": 0.01}
    model = make(encoder, epochs=3, sharpening=sharpening, **paper).fit(train)
    soft = model.predict_proba(train)
    soft.check(train.id_list)
    model.save(tmp_path / "model")
    loaded = ConditionalHMM.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(train).probabilities, soft.probabilities)


def test_a_tagger_among_the_sources_is_heard_where_others_are_silent(encoder: str) -> None:
    train = sentences(200, known=4)
    assert train.entities is not None
    labels = train.entities.labels(train.offsets, LabelSet(("PER",)))
    sure = np.full((len(labels), 3), 0.01, np.float32)
    sure[np.arange(len(labels)), labels] = 0.98
    taught = train.with_source("tagger", SoftLabels(("PER",), train.offsets, sure))
    alone = make(encoder, epochs=1).fit(train).predict(train)
    together = make(encoder, epochs=1, trust=1.0).fit(taught).predict(taught)
    assert recall(together, train) > recall(alone, train) + 0.3


@pytest.mark.parametrize("kind", [ConditionalHMM, ConditionalIID])
def test_a_tagger_shares_what_is_expected_of_each_token(encoder: str, kind: type) -> None:
    train = sentences(30, known=4)
    said = np.random.default_rng(0).dirichlet(np.full(3, 0.5), int(train.offsets[-1])).astype(np.float32)
    taught = train.with_source("tagger", SoftLabels(("PER",), train.offsets, said))
    model = make(encoder, kind, epochs=1, missed=None, trust=0.4).fit(taught)
    data = ConditionalData(model, taught, model._features(taught))
    [documents] = data.in_order()
    with torch.no_grad():
        found = model.network_(data.batch(documents)).evidence.numpy()
    votes = observe(taught, "bio", "never").of_votes().log_evidence(model.learned().emissions)
    np.testing.assert_allclose(found, model.chosen_["weight"] * votes + 0.4 * np.log(np.maximum(said, 1e-6)), atol=1e-4)


def test_what_dev_chose_once_is_what_a_later_fit_begins_with(encoder: str) -> None:
    train = sentences(40, known=4)
    model = make(encoder, epochs=1).fit(train, train)
    model.chosen_["weight"] = 0.2
    model.silence_ = "never"
    chosen = model.as_chosen()
    assert chosen.settings() == {**model.settings(), "weight": 0.2, "silence": "never"}
    assert chosen.types_ is None, "settings are not fitted themselves"
