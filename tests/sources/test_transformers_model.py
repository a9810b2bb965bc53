"""Token classifiers of Hugging Face: a tiny one with weights made here, so that what it must say is known."""

import json
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from source_documents import from_words, tagged
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import StorageError, UsageError
from tagweave.sources import TransformersModel, create_source
from tagweave.sources.base import checked
from tiny_encoder import build

WORDS = ["Ada", "Love", "##lace", "left", "Oslo", "for", "Rome", "Bergen"]
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
MEANT = {"Ada": "B-PER", "Love": "I-PER", "##lace": "B-LOC", "Oslo": "B-LOC", "Rome": "I-LOC", "Bergen": "I-LOC"}


def classifier(folder: Path, labels: Sequence[str], meant: dict[str, str]) -> str:
    """A model that only looks at the piece itself, and is sure that its label is as meant."""
    import torch
    from transformers import BertForTokenClassification, PreTrainedTokenizerFast

    from tagweave.encoder.model_folders import quiet

    build(folder, WORDS)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    names = dict(enumerate(labels))
    with torch.random.fork_rng(), quiet(), torch.no_grad():
        torch.manual_seed(1)
        model = BertForTokenClassification.from_pretrained(
            folder, id2label=names, label2id={label: number for number, label in names.items()}
        )
        for layer in model.bert.encoder.layer:
            for part in (layer.attention.output, layer.output):
                part.dense.weight.zero_()
                part.dense.bias.zero_()
        embeddings = model.bert.embeddings
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        table = torch.zeros_like(embeddings.word_embeddings.weight)
        for number in range(len(table)):
            label = meant.get(tokenizer.convert_ids_to_tokens(number), "O")
            table[number, list(labels).index(label)] = 1.0
        embeddings.word_embeddings.weight.copy_(table)
        model.classifier.weight.copy_(2 * torch.eye(len(labels), table.shape[1]))
        model.classifier.bias.zero_()
        model.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return classifier(tmp_path_factory.mktemp("bio"), LABELS, MEANT)


def test_each_token_is_read_at_its_first_piece(folder: str) -> None:
    source = TransformersModel("m", folder)
    assert source.types == ("PER", "LOC")
    found = tagged(source, from_words("Ada Lovelace left Oslo for Rome Bergen"))
    assert found == [("Ada Lovelace", "PER"), ("Oslo", "LOC"), ("Rome Bergen", "LOC")]


def test_scores_are_mean_probabilities_of_the_type(folder: str) -> None:
    document = from_words("Ada Lovelace left")
    source = TransformersModel("m", folder)
    (votes,) = source.annotate([document])
    (span,) = checked(source, document, votes) or []
    assert span[:3] == (0, 2, "PER")
    assert span.score is not None
    assert 0.9 < span.score < 1
    (votes,) = TransformersModel("m", folder, scores=False).annotate([document])
    assert votes == [Span(0, 2, "PER", None)]


def test_documents_of_any_length_and_none(folder: str) -> None:
    long = ["left"] * 500
    long[250:252] = ["Ada", "Lovelace"]
    long[-1] = "Oslo"
    documents = [Document("a", []), Document("b", long), Document("c", ["Oslo", "\u200b"])]
    source = TransformersModel("m", folder, overlap=8)
    found = [[span[:3] for span in votes or ()] for votes in source.annotate(documents)]
    assert found == [[], [(250, 252, "PER"), (499, 500, "LOC")], [(0, 1, "LOC")]]
    assert list(source.annotate([])) == []


def test_other_names(folder: str) -> None:
    source = create_source("transformers-model", {"name": "m", "model": folder, "rename": {"LOC": "TOWN"}})
    assert source.types == ("TOWN",)
    assert tagged(source, from_words("Ada left Oslo")) == [("Oslo", "TOWN")]
    source = TransformersModel("m", folder, rename={"LOC": "TOWN"}, keep=True)
    assert tagged(source, from_words("Ada left Oslo")) == [("Ada", "PER"), ("Oslo", "TOWN")]


def test_labels_that_begin_and_end_entities(tmp_path: Path) -> None:
    labels = ["O", "B-PER", "E-PER", "S-LOC"]
    meant = {"Ada": "B-PER", "Love": "E-PER", "Oslo": "S-LOC", "Rome": "S-LOC"}
    source = TransformersModel("m", classifier(tmp_path / "m", labels, meant))
    found = tagged(source, from_words("Ada Lovelace left Oslo Rome"))
    assert found == [("Ada Lovelace", "PER"), ("Oslo", "LOC"), ("Rome", "LOC")]


def test_labels_without_prefix(tmp_path: Path) -> None:
    source = TransformersModel("m", classifier(tmp_path / "m", ["PER", "O"], {"Ada": "PER", "Love": "PER"}))
    assert tagged(source, from_words("Ada Lovelace left Oslo")) == [("Ada Lovelace", "PER")]


def test_a_copy_in_another_process_loads_the_model_itself(folder: str) -> None:
    source = TransformersModel("m", folder)
    source.load()
    sent = pickle.dumps(source)
    assert len(sent) < 10_000
    assert tagged(pickle.loads(sent), from_words("to Oslo")) == [("Oslo", "LOC")]


def changed(folder: str, target: Path, **values: object) -> str:
    target.mkdir()
    for path in Path(folder).iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, **values}))
    return str(target)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"architectures": ["BertModel"]}, "no token classifier"),
        ({"architectures": None}, "no token classifier"),
        ({"id2label": {str(number): f"LABEL_{number}" for number in range(5)}}, "names in id2label"),
        ({"id2label": {"0": "B-PER", "1": "I-PER"}}, "none of the labels .* is O"),
        ({"id2label": {"0": "O", "1": "B-"}}, "names no entity type"),
    ],
)
def test_what_is_no_classifier_of_entities(
    folder: str, values: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        TransformersModel("m", changed(folder, tmp_path / "m", **values)).load()


def test_only_safetensors(folder: str, tmp_path: Path) -> None:
    target = Path(changed(folder, tmp_path / "m"))
    (target / "model.safetensors").rename(target / "pytorch_model.bin")
    with pytest.raises(StorageError, match="safetensors"):
        TransformersModel("m", str(target)).load()


def test_what_does_not_exist(folder: str) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        TransformersModel("m", "/no/such/folder").load()
    with pytest.raises(UsageError, match="Did you mean 'LOC'"):
        TransformersModel("m", folder, rename={"LOK": "X"}).load()
