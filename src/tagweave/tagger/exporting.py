"""Taggers for ONNX Runtime: the classifier as a graph of numbers alone, which needs no code of its model.

The folder is that of a tagger with `model.onnx` in place of the weights, and `Tagger.load` reads it. With `int8` the
weights are whole numbers of 8 bits, with a scale for each column, and the inputs of each product are rounded to 8 bits
as they come, which is faster where the processor has instructions for it (VNNI). Products that make their inputs
narrower stay as they are: what goes into those of the feed-forward layers has a few large numbers, beside which the
others would be rounded to nothing.
"""

import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from tagweave.encoder import Encoder
from tagweave.encoder.model_folders import quiet
from tagweave.errors import MissingExtraError, StorageError, UsageError
from tagweave.storage import new_folder
from tagweave.tagger.crf import NAME as CRF_NAME
from tagweave.tagger.model import Tagger

FILE = "model.onnx"
_INPUTS = ("input_ids", "attention_mask")
_OPSET = 20


def export(tagger: Tagger, folder: Path, *, int8: bool = False) -> None:
    """Write a tagger for ONNX Runtime.

    Args:
        tagger: a fitted one of any kind.
        folder: where; it reads like that of `Tagger.save`, but can only predict.
        int8: whether weights and inputs of most products are rounded to 8 bits.

    Raises:
        MissingExtraError: onnx, onnxscript or onnxruntime is not installed.
        UsageError: the tagger was exported before, or its encoder has something that ONNX has not.
    """
    _require("onnx", "onnxscript", "onnxruntime")
    tagger.check_whole("exported once more")
    with new_folder(Path(folder)) as work:
        with quiet():
            tagger.model_.config.save_pretrained(work)
        if tagger.output == "crf":
            from safetensors.torch import save_file

            state = tagger.model_.crf.state_dict()
            save_file({f"{CRF_NAME}{name}": value.cpu() for name, value in state.items()}, work / "model.safetensors")
        _write(tagger.model_, work / FILE)
        if int8:
            _round(work / FILE)
        tagger.describe(work, {"format": "onnx", "int8": int8})


class _Logits(nn.Module):
    """A classifier that gives nothing but scores."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        logits: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits


def _write(model: Any, path: Path) -> None:  # noqa: ANN401
    ids = torch.arange(24, device=model.device).reshape(3, 8) % model.config.vocab_size
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    try:
        with torch.no_grad(), _silent():
            torch.onnx.export(
                _Logits(model).eval(),
                (ids, mask),
                path,
                input_names=list(_INPUTS),
                output_names=["logits"],
                dynamic_shapes=dict.fromkeys(_INPUTS, sizes),
                opset_version=_OPSET,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
    except Exception as error:  # the exporter raises many kinds for a model that it cannot follow
        reason = str(error).strip().partition("\n")[0]
        raise UsageError(f"this encoder cannot be exported to ONNX ({type(error).__name__}: {reason})") from error


def _round(path: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(path).graph
    shapes = {weights.name: tuple(weights.dims) for weights in graph.initializer}
    narrowing = [
        node.name
        for node in graph.node
        if node.op_type == "MatMul" and any(len(s := shapes.get(name, ())) == 2 and s[0] > s[1] for name in node.input)
    ]
    whole = path.with_suffix(".whole")
    path.rename(whole)
    with _silent():
        quantize_dynamic(whole, path, weight_type=QuantType.QInt8, per_channel=True, nodes_to_exclude=narrowing)
    whole.unlink()


@contextmanager
def _silent() -> Iterator[None]:
    """What exporters say to their own developers is not shown."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


class OnnxClassifier(nn.Module):
    """A token classifier that ONNX Runtime computes, on the processor, with as many threads as torch has.

    Args:
        folder: that `export` wrote.
        outputs: how many scores each piece has.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        StorageError: the file is none that ONNX Runtime reads, or of another classifier.
    """

    def __init__(self, folder: Path, outputs: int) -> None:
        super().__init__()
        _require("onnxruntime")
        import onnxruntime

        self.config = SimpleNamespace(num_labels=outputs)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
        options.log_severity_level = 3
        try:
            self.session = onnxruntime.InferenceSession(folder / FILE, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's own kinds, one for each stage of loading
            reason = str(error).strip().partition("\n")[0]
            raise StorageError(f"{folder / FILE} cannot be loaded by ONNX Runtime ({reason})") from None
        given = {one.name for one in self.session.get_inputs()}
        found = {one.name: one.shape[-1:] for one in self.session.get_outputs()}
        if given != set(_INPUTS) or found != {"logits": [outputs]}:
            raise StorageError(f"{folder / FILE} is of another classifier: its inputs or outputs are others")

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        """Scores of shape [windows, pieces, outputs], as `logits`."""
        given = {"input_ids": input_ids.cpu().numpy(), "attention_mask": attention_mask.cpu().numpy()}
        logits = torch.from_numpy(self.session.run(["logits"], given)[0])
        return SimpleNamespace(logits=logits.to(input_ids.device))


def load(tagger: Tagger, folder: Path, facts: object) -> None:
    """Give a tagger the encoder and the model of a folder that `export` wrote, which says the facts of the export."""
    if not isinstance(facts, dict) or facts.get("format") != "onnx":
        raise StorageError(f"{folder} holds a tagger in a form that this version does not know: {facts!r}")
    tagger.encoder_ = Encoder.at(folder)
    tagger.model_ = OnnxClassifier(folder, len(tagger._outputs()))


def _require(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(
                f"this needs the package {package}, which is not installed: pip install 'tagweave[onnx]'"
            )
