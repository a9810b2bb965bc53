"""Folders of encoders, taggers and pipelines that somebody has changed: nothing in them runs, and errors are ours."""

import json
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tiny_encoder
from attacks.folders import Payload, broken_tensors, changed, corpus, planted, signed
from tagweave.encoder import Encoder
from tagweave.encoder.embeddings import embed
from tagweave.errors import StorageError, TagweaveWarning
from tagweave.tagger import Tagger


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder."""
    return Path(tiny_encoder.build(tmp_path_factory.mktemp("plain"), ["Ada", "Lovelace", "saw", "Oslo"]))


@pytest.fixture(scope="module")
def fitted(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved tagger with a CRF."""
    folder = tmp_path_factory.mktemp("tagger") / "saved"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Tagger(encoder=str(plain), output="crf", epochs=1).fit(corpus()).save(folder)
    return folder


@pytest.fixture
def encoder(plain: Path, tmp_path: Path) -> Path:
    """A copy of the encoder."""
    return Path(shutil.copytree(plain, tmp_path / "encoder"))


@pytest.fixture
def tagger(fitted: Path, tmp_path: Path) -> Path:
    """A copy of the tagger."""
    return Path(shutil.copytree(fitted, tmp_path / "tagger"))


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Path]:
    """What code that runs would make; it must not be there in the end."""
    yield tmp_path / "mark"
    assert not (tmp_path / "mark").exists()


def used(folder: Path) -> None:
    """All that is done with an encoder."""
    loaded = Encoder.load(str(folder))
    loaded.model()
    loaded.classifier(["O", "B-PER", "I-PER"], seed=0)


def test_a_payload_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Payload(tmp_path / "made")))
    assert (tmp_path / "made").exists()


# Encoders


def test_pickles_and_code_beside_the_weights(encoder: Path, mark: Path) -> None:
    planted(encoder, mark)
    used(encoder)


def test_pickles_in_place_of_the_weights(encoder: Path, mark: Path) -> None:
    planted(encoder, mark)
    (encoder / "model.safetensors").unlink()
    with pytest.raises(StorageError, match="safetensors"):
        used(encoder)
    (encoder / "other.safetensors").write_bytes((encoder / "pytorch_model.bin").read_bytes())
    with pytest.raises(StorageError):
        used(encoder)


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "../model.safetensors", "/etc/passwd.safetensors", "a\0.safetensors", 7, ["x"]]
)
def test_an_index_that_names_other_files(name: object, encoder: Path, mark: Path) -> None:
    planted(encoder, mark)
    names = load_file(encoder / "model.safetensors")
    (encoder / "model.safetensors").rename(encoder / "model-00001-of-00001.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, name)}
    (encoder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(StorageError):
        used(encoder)


REMOTE = {
    "AutoConfig": "configuration_evil.EvilConfig",
    "AutoModel": "modeling_evil.EvilModel",
    "AutoModelForTokenClassification": "modeling_evil.EvilModel",
    "AutoTokenizer": ["tokenization_evil.EvilTokenizer", "tokenization_evil.EvilTokenizer"],
}


@pytest.mark.parametrize("known", [True, False], ids=["known kind", "unknown kind"])
@pytest.mark.parametrize("where", ["config.json", "tokenizer_config.json"])
def test_code_of_the_author(where: str, known: bool, encoder: Path, mark: Path) -> None:
    planted(encoder, mark)
    own: dict[str, Any] = {"auto_map": REMOTE, "trust_remote_code": True}
    if not known:
        own |= {"model_type": "evil"} if where == "config.json" else {"tokenizer_class": "EvilTokenizer"}
    changed(encoder / where, lambda config: config.update(own))
    if where == "tokenizer_config.json" and not known:
        (encoder / "tokenizer.json").unlink()
    if known:
        used(encoder)
    else:
        with pytest.raises(StorageError):
            used(encoder)


def test_code_of_the_author_on_the_hub(encoder: Path, mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    elsewhere = {name: f"evil/repository--{value}" for name, value in REMOTE.items() if isinstance(value, str)}
    changed(encoder / "config.json", lambda config: config.update(auto_map=elsewhere, model_type="evil"))
    with pytest.raises(StorageError):
        used(encoder)


CONFIGS: dict[str, dict[str, Any]] = {
    "many layers": {"num_hidden_layers": 10**9},
    "some more layers": {"num_hidden_layers": 1000},
    "wide": {"hidden_size": 10**6},
    "wider inside": {"intermediate_size": 10**8},
    "many words": {"vocab_size": 10**12},
    "long": {"max_position_embeddings": 10**10},
    "negative": {"hidden_size": -32},
    "zero heads": {"num_attention_heads": 0},
    "text": {"hidden_size": "32"},
    "list": {"num_hidden_layers": [1]},
    "none": {"vocab_size": None},
    "huge number": {"hidden_size": 10**400},
    "other kind": {"model_type": "../../evil"},
    "kind is a number": {"model_type": 7},
    "packed": {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
    "kernels": {"attn_implementation": "evil/kernels"},
    "kernels inside": {"text_config": {"_attn_implementation": "evil/kernels"}},
    "activation": {"hidden_act": "__import__('os').system"},
}


@pytest.mark.parametrize("what", CONFIGS)
def test_configurations_of_encoders(what: str, encoder: Path) -> None:
    changed(encoder / "config.json", lambda config: config.update(CONFIGS[what]))
    with pytest.raises(StorageError):
        used(encoder)


def test_an_adapter_of_another_model(encoder: Path, mark: Path) -> None:
    planted(encoder, mark)
    (encoder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "evil/model"}))
    with pytest.raises(StorageError, match="adapter"):
        used(encoder)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"model": {"type": "BPE"}}'])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_files_of_encoders_that_are_broken(name: str, raw: bytes, encoder: Path) -> None:
    (encoder / name).write_bytes(raw)
    with pytest.raises(StorageError):
        used(encoder)


def test_broken_weights(encoder: Path) -> None:
    good = (encoder / "model.safetensors").read_bytes()
    for what, raw in broken_tensors(good):
        (encoder / "model.safetensors").write_bytes(raw)
        try:
            used(encoder)
        except StorageError:
            continue
        assert what in ("other names", "overlap"), what  # a model with other weights is one, if a useless one


# Taggers


def test_pickles_and_code_in_the_folder_of_a_tagger(tagger: Path, mark: Path) -> None:
    planted(tagger, mark)
    Tagger.load(tagger)
    signed(tagger)
    Tagger.load(tagger).predict(corpus())


def test_broken_weights_of_a_tagger(tagger: Path) -> None:
    good = (tagger / "model.safetensors").read_bytes()
    for what, raw in broken_tensors(good):
        (tagger / "model.safetensors").write_bytes(raw)
        signed(tagger)
        with pytest.raises(StorageError):
            raise AssertionError(what, Tagger.load(tagger))


@pytest.mark.parametrize("part", ["classifier.weight", "classifier.bias", "crf.start", "crf.transitions", "bert."])
@pytest.mark.parametrize("change", ["missing", "smaller", "one"])
def test_weights_of_a_tagger_that_do_not_fit(part: str, change: str, tagger: Path) -> None:
    path = tagger / "model.safetensors"
    weights = load_file(path)
    name = next(name for name in weights if name.startswith(part))
    array = weights.pop(name)
    if change != "missing":
        weights[name] = np.ascontiguousarray(array[:1] if change == "one" else array[:-1])
    save_file(weights, path, {"format": "pt"})
    signed(tagger)
    with pytest.raises(StorageError):
        Tagger.load(tagger)


TAGGERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "other kind": lambda config: config.update(kind="label-model"),
    "a class": lambda config: config.update(tagger="subprocess.Popen"),
    "no class": lambda config: config.pop("tagger"),
    "list of classes": lambda config: config.update(tagger=["bert"]),
    "no settings": lambda config: config.pop("settings"),
    "settings are a list": lambda config: config.update(settings=[1]),
    "unknown setting": lambda config: config["settings"].update(callback="os.system"),
    "huge setting": lambda config: config["settings"].update(window=10**400),
    "other output": lambda config: config["settings"].update(output="softmax"),
    "types are a text": lambda config: config.update(types="PER"),
    "type is a table": lambda config: config.update(types=[{}]),
    "more types": lambda config: config.update(types=["A", "B", "C", "D"]),
    "type twice": lambda config: config.update(types=["A", "A"]),
    "type O": lambda config: config.update(types=["O", "PER"]),
    "no types": lambda config: config.update(types=[]),
    "history is a text": lambda config: config.update(history="x"),
    "extra key": lambda config: config.update(auto_map={"AutoModel": "evil.Evil"}),
    "a list": lambda config: [config],
}


@pytest.mark.parametrize("what", TAGGERS)
def test_changed_configurations_of_taggers(what: str, tagger: Path) -> None:
    changed(tagger / "tagweave.json", TAGGERS[what])
    signed(tagger)
    with pytest.raises(StorageError):
        Tagger.load(tagger)


def test_the_encoder_of_a_saved_tagger_is_its_own(tagger: Path, mark: Path) -> None:
    changed(tagger / "tagweave.json", lambda config: config["settings"].update(encoder=str(mark)))
    signed(tagger)
    assert Tagger.load(tagger).encoder_.folder == tagger


# What is kept between runs


def test_a_cache_of_embeddings_with_a_pickle(encoder: Path, mark: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    right = np.array(embed(corpus(), str(encoder), cache=cache))
    [path] = cache.glob("*/rows.npy")
    objects = np.empty(len(right), object)
    objects[:] = [Payload(mark)] * len(right)
    np.save(path, objects, allow_pickle=True)
    signed(path.parent)
    with pytest.warns(TagweaveWarning, match="made anew"):
        np.testing.assert_array_equal(embed(corpus(), str(encoder), cache=cache), right)


@pytest.mark.parametrize("fits", [True, False], ids=["manifest-fits", "manifest-as-it-was"])
@pytest.mark.parametrize("what", ["pickle", "nothing", "huge", "folder"])
def test_a_cache_of_embeddings_that_is_broken(what: str, fits: bool, encoder: Path, mark: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    right = np.array(embed(corpus(), str(encoder), cache=cache))
    [path] = cache.glob("*/rows.npy")
    raw = path.read_bytes()
    path.unlink()
    wrong = {"pickle": pickle.dumps(Payload(mark)), "nothing": b"", "huge": raw.replace(b"(24, 32)", b"(9**99,)")}
    if what == "folder":
        path.mkdir()
    else:
        path.write_bytes(wrong[what])
    if fits:
        signed(path.parent)
    with pytest.warns(TagweaveWarning, match="made anew"):
        np.testing.assert_array_equal(embed(corpus(), str(encoder), cache=cache), right)


def test_a_training_that_goes_on(encoder: Path, mark: Path, tmp_path: Path) -> None:
    training = tmp_path / "training"
    settings = {"encoder": str(encoder), "epochs": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Tagger(**settings).fit(corpus(), corpus(), folder=training)
        for folder in [training, *(path for path in training.rglob("*") if path.is_dir())]:
            planted(folder, mark)
        Tagger(**settings).fit(corpus(), corpus(), folder=training, resume=True)


STATES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no epoch": lambda config: config.pop("epoch"),
    "epoch is a text": lambda config: config.update(epoch="1"),
    "negative epoch": lambda config: config.update(epoch=-1),
    "no notes": lambda config: config.pop("notes"),
    "notes are a list": lambda config: config.update(notes=[]),
    "no history": lambda config: config["notes"].pop("history"),
    "history of numbers": lambda config: config["notes"].update(history=[1]),
    "history without scores": lambda config: config["notes"].update(history=[{}]),
    "no fingerprint": lambda config: config["notes"].pop("fingerprint"),
}


@pytest.mark.parametrize("what", STATES)
def test_a_changed_state_of_a_training(what: str, encoder: Path, tmp_path: Path) -> None:
    training = tmp_path / "training"
    settings = {"encoder": str(encoder), "epochs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Tagger(**settings).fit(corpus(), corpus(), folder=training)
        changed(training / "last" / "config.json", STATES[what])
        signed(training / "last")
        with pytest.raises(StorageError):
            Tagger(**settings).fit(corpus(), corpus(), folder=training, resume=True)
