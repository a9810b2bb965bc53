"""Frozen layers: a model in two parts says what it says as a whole, and a training with kept states ends where one does
that computes everything anew."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModelForTokenClassification

import tiny_encoder
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.encoder import Encoder, frozen
from tagweave.encoder.frozen import Cut, Kept, frozen_layers, lower, lower_parameters, upper
from tagweave.encoder.windows import Windows
from tagweave.tagger import BOND, Tagger
from tagweave.tagger.fitting import Fitting
from tagweave.training import seeded

SMALL: dict[str, Any] = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2,
                         "intermediate_size": 48, "max_position_embeddings": 40, "pad_token_id": 0}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {},
    "mpnet": {},
    "electra": {"embedding_size": 16},
    "distilbert": {"dim": 32, "n_layers": 4, "n_heads": 2, "hidden_dim": 48},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "conv_kernel_size": 3},
    "modernbert": {"local_attention": 8, "cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2},
}
NAMES = ["Ada", "Berit", "Tove", "Oslo", "Lund", "Vestara"]
WORDS = [*NAMES, "visited", "left", ".", "and", "in", "saw", "to", "the", "a", "on"]


def model_of(kind: str) -> Any:  # noqa: ANN401
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **{**SMALL, **KINDS[kind]}, num_labels=3)
    return AutoModelForTokenClassification.from_config(config).eval()


def inputs_of(windows: int, pieces: int) -> dict[str, torch.Tensor]:
    chance = torch.Generator().manual_seed(windows)
    ids = torch.randint(3, 50, (windows, pieces), generator=chance)
    mask = torch.ones_like(ids)
    mask[0, pieces // 2 :] = 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("layer", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_two_parts_say_what_the_whole_says(kind: str, layer: int) -> None:
    model, inputs = model_of(kind), inputs_of(3, 30)
    cut = Cut.of(model, layer, Kept())
    assert cut is not None
    with torch.no_grad():
        states, size = lower(model, layer, inputs)
        parts = upper(model, layer, {**inputs, "input_ids": inputs["input_ids"] * 0 + 4}, states, size).logits
        whole = model(**inputs).logits
    there = inputs["attention_mask"].bool()
    torch.testing.assert_close(parts[there], whole[there], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_below_a_cut_are_those_that_change_its_states(kind: str) -> None:
    model, inputs = model_of(kind), inputs_of(3, 30)
    below = {id(p) for p in lower_parameters(model, 2)}
    assert not any(p.grad is not None for p in model.parameters())
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            before, kept = lower(model, 2, inputs)[0], parameter.clone()
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
            changed = not torch.equal(lower(model, 2, inputs)[0], before)
            parameter.copy_(kept)
        if changed:
            assert id(parameter) in below, name
        elif "position" not in name:
            assert id(parameter) not in below or "bias" in name or "token_type" in name, name


class Restless(torch.nn.Module):
    """An encoder that adds something between its layers, which nobody could know."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.inner, self.layer, self.calls = model, model.layer, 0

    def forward(self, hidden_states: torch.Tensor, **named: Any) -> Any:  # noqa: ANN401
        self.calls += 1
        output = self.inner(hidden_states, **named)
        output.last_hidden_state = output.last_hidden_state + hidden_states
        return output


def test_a_model_that_cannot_be_cut_is_not() -> None:
    model = model_of("bert")
    model.bert.encoder = Restless(model.bert.encoder)
    assert Cut.of(model, 2, Kept()) is None
    assert Cut.of(model_of("bert"), 0, Kept()) is None
    assert frozen_layers(model_of("bert"), None) == 2


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAGWEAVE_CACHE", str(tmp_path / "cache"))


def documents(count: int, seed: int = 0) -> Corpus:
    chance = np.random.default_rng(seed)
    found = []
    for number in range(count):
        size = int(chance.integers(1, 12)) if number else 70
        tokens = [WORDS[i] for i in chance.integers(0, len(WORDS), size)]
        entities = [Span(i, i + 1, "PER" if WORDS.index(t) < 3 else "LOC") for i, t in enumerate(tokens)
                    if WORDS.index(t) < 6]  # fmt: skip
        found.append(Document(f"d{number}", tokens, entities=entities))
    return Corpus.from_documents(found, types=["PER", "LOC"])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder.build(tmp_path_factory.mktemp("tiny"), WORDS)


def make(tiny: str, kind: type[Tagger] = Tagger, **settings: Any) -> Tagger:  # noqa: ANN401
    given = {"encoder": tiny, "epochs": 3, "learning_rate": 1e-2, "window": 24, "overlap": 6, "warmup": 0,
             "precision": "float32"}  # fmt: skip
    return kind(**{**given, **settings})


def weights(tagger: Tagger) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in tagger.model_.parameters()])


@pytest.mark.filterwarnings("ignore::tagweave.errors.TagweaveWarning")
@pytest.mark.parametrize("in_memory", [2**28, 0])
@pytest.mark.parametrize("kind", [Tagger, BOND])
def test_training_with_kept_states_is_training(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Tagger], in_memory: int
) -> None:
    monkeypatch.setattr(frozen, "IN_MEMORY", in_memory)
    corpus, dev = documents(40), documents(10, 1)
    counted = []
    monkeypatch.setattr(frozen, "lower", lambda *given: counted.append(1) or lower(*given))
    kept = make(tiny, kind).fit(corpus, dev)
    calls = len(counted)
    monkeypatch.setattr(Cut, "of", lambda *given: None)
    plain = make(tiny, kind).fit(corpus, dev)
    assert 0 < calls < 20
    assert kept.cut_ is None
    assert list((tmp_path / "cache" / "frozen-layers").glob("*") if in_memory == 0 else []) == []
    np.testing.assert_allclose([r["loss"] for r in kept.history_], [r["loss"] for r in plain.history_], rtol=1e-4)
    assert [r["f1"] for r in kept.history_] == [r["f1"] for r in plain.history_]
    found, expected = (tagger.predict_proba(dev).probabilities for tagger in (kept, plain))
    np.testing.assert_allclose(found, expected, atol=1e-2)  # AdamW makes much of last digits where gradients are tiny


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("bfloat16", 1e-2)])
def test_gradients_with_kept_states_are_the_gradients(tiny: str, precision: str, tolerance: float) -> None:
    corpus = documents(40)
    training = Fitting(make(tiny, precision=precision), corpus, None, None)
    model = training._tagger.model_.train()

    def gradients(chosen: NDArray[np.int64]) -> torch.Tensor:
        with seeded(1):
            loss, weight = training._loss(chosen)
            (loss / weight).backward()
        found = torch.cat([p.grad.flatten().clone() for p in model.parameters() if p.grad is not None])
        model.zero_grad()
        return found

    batches = training._batches(0)
    expected = [gradients(chosen) for chosen in batches]
    with training._keeping():
        assert training._states is not None
        for _ in range(2):
            for chosen, wanted in zip(batches, expected, strict=True):
                torch.testing.assert_close(gradients(chosen), wanted, rtol=10 * tolerance, atol=tolerance)
        assert training._states._done.all()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_states_are_the_same_whether_training_or_prediction_asks_first(tiny: str, precision: str) -> None:
    training = Fitting(make(tiny, precision=precision), documents(40), None, None)
    everything, found = np.arange(len(training._windows)), []
    for learns in (True, False):
        with training._keeping(), torch.set_grad_enabled(learns):
            assert training._states is not None
            training._tagger._logits(training._pieces, training._windows, everything, training._states)
            found.append(np.array(training._states.rows))
    np.testing.assert_array_equal(*found)


@pytest.mark.filterwarnings("ignore::tagweave.errors.TagweaveWarning")
def test_a_training_that_stopped_goes_on_to_the_same_weights(tiny: str, tmp_path: Path) -> None:
    corpus, dev = documents(40), documents(10, 1)
    unbroken = make(tiny).fit(corpus, dev)
    for _ in make(tiny).fit_steps(corpus, dev, folder=tmp_path):
        break
    resumed = make(tiny).fit(corpus, dev, folder=tmp_path, resume=True)
    assert torch.equal(weights(resumed), weights(unbroken))
    assert resumed.history_ == unbroken.history_


@pytest.mark.parametrize("fails", ["no room", "full"])
def test_without_room_everything_is_computed(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.setattr(frozen, "IN_MEMORY", 0)
    if fails == "no room":
        monkeypatch.setattr(frozen, "_SPARE", 2**80)
    corpus = documents(20)
    tagger = make(tiny).fit(corpus)
    expected = tagger.predict_proba(corpus).probabilities
    with Kept() as kept:
        tagger.keep(kept)
        if fails == "full":
            monkeypatch.setattr(frozen, "_write", _full)
        found = tagger.predict_proba(corpus).probabilities
        assert kept.states
    np.testing.assert_allclose(found, expected, atol=1e-5)


def _full(*given: object) -> None:
    raise OSError(28, "No space left on device")


def test_predictions_are_the_same_with_kept_states_and_after_them(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = documents(20)
    tagger = make(tiny).fit(corpus)
    expected = tagger.predict_proba(corpus).probabilities
    with Kept() as kept:
        tagger.keep(kept)
        for _ in range(2):
            np.testing.assert_allclose(tagger.predict_proba(corpus).probabilities, expected, atol=1e-5)
        assert len(kept.states) == 1
        with torch.no_grad():
            tagger.model_.base_model.embeddings.word_embeddings.weight.mul_(-1)
        tagger.keep(kept)
        assert np.abs(tagger.predict_proba(corpus).probabilities - expected).max() > 1e-3
        assert len(kept.states) == 2
    with torch.no_grad():
        tagger.model_.base_model.embeddings.word_embeddings.weight.mul_(-1)
    np.testing.assert_allclose(tagger.predict_proba(corpus).probabilities, expected, atol=1e-4)
    parts, asked = list(corpus.batches(30)), []
    monkeypatch.setattr(Corpus, "batches", lambda corpus: asked.append(corpus) or iter(parts))
    np.testing.assert_allclose(tagger.predict_proba(corpus).probabilities, expected, atol=1e-4)
    assert len(parts) > 1 and asked  # memory is bounded again


def test_number_formats_are_kept_apart(tiny: str) -> None:
    corpus = documents(6)
    tagger = make(tiny).fit(corpus)
    cut = Cut.of(tagger.model_, 1, Kept())
    assert cut is not None
    encoder = Encoder.load(tiny)
    pieces = encoder.pieces(corpus.tokens)
    windows = Windows.cut(pieces.counts, corpus.offsets, 24, 6)
    exact = cut.states(encoder, pieces, windows, torch.float32)
    assert cut.states(encoder, pieces, windows, torch.float32) is exact
    assert cut.states(encoder, pieces, windows, torch.bfloat16) is not exact
