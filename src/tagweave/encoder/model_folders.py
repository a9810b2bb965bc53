"""Folders of models in the form of Hugging Face: looked at before anything is loaded, and loaded without running them.

What a folder says is data of others. Weights come from safetensors only, pickles beside them are never opened, code of
a model's author is never run, and the sizes that a configuration claims must be those of the weights.
"""

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagweave.errors import StorageError
from tagweave.storage import is_inside, read_json, tensors_in

if TYPE_CHECKING:
    import torch

_INDEX = "model.safetensors.index.json"
_ADAPTER = "adapter_config.json"
_ADDED = 3
"""How many times the numbers of the weights a model may have; what it adds to them (a pooler, say) is little."""


def checked(folder: Path) -> Path:
    """The folder, if it is one of a model whose weights are safetensors.

    Raises:
        StorageError: it has no configuration or no such weights, or is made of parts that are elsewhere.
    """
    if not (folder / "config.json").is_file():
        raise StorageError(f"{folder} is no encoder: config.json is missing")
    if (folder / _ADAPTER).exists():
        raise StorageError(f"{folder} holds an adapter of another model: merge them, and save the whole")
    if not any(folder.glob("*.safetensors")):
        raise StorageError(
            f"{folder} has no weights as safetensors, the only kind that is read. Convert it: load it with "
            "transformers and save_pretrained to another folder"
        )
    _check_index(folder)
    _check_config(folder)
    return folder


def _check_index(folder: Path) -> None:
    """Weights in several files are all safetensors, and all in the folder."""
    if not (folder / _INDEX).exists():
        return
    files = read_json(folder / _INDEX).get("weight_map")
    names = set(map(str, files.values())) if isinstance(files, dict) else {""}
    wrong = sorted(name for name in names if not is_inside(name) or "/" in name or not name.endswith(".safetensors"))
    if wrong:
        raise StorageError(f"{folder / _INDEX} names {wrong[0]!r}, which is no file of safetensors in the folder")


def _check_config(folder: Path) -> None:
    """No more layers than there are weights, no packed weights, and no kernels from elsewhere."""
    layers = max(sum(len(tensors_in(path)) for path in folder.glob("*.safetensors")), 1)
    for key, value in _entries(read_json(folder / "config.json")):
        if key == "quantization_config" and value:
            raise StorageError(f"{folder} holds packed weights ({key}), which are not read. Save it unpacked")
        if key.endswith("_implementation") and "/" in str(value):
            raise StorageError(f"{folder}: its config.json wants code from elsewhere ({key}: {value!r})")
        if "layers" in key and isinstance(value, int) and value > layers:
            raise StorageError(f"{folder}: its config.json says {key}: {value}, but there are {layers} weights")


def _entries(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """All keys and values, of tables in tables too."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield from found.items()
        waiting.extend(found.values() if isinstance(found, dict) else found if isinstance(found, list) else ())


@contextmanager
def quiet() -> Iterator[None]:
    """Silences the loading reports and bars of transformers inside the block."""
    logging: Any = import_module("transformers.utils.logging")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def load_tokenizer(folder: Path) -> tuple[Any, Any]:
    """Tokenizer and configuration of a folder.

    Raises:
        StorageError: the folder cannot be loaded.
    """
    from transformers import AutoConfig, AutoTokenizer

    options: dict[str, Any] = {"local_files_only": True}
    with quiet(), _as_storage_error(folder):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, **options)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **options)
        if tokenizer.is_fast and _NO_PREFIX_SPACE.search(tokenizer.backend_tokenizer.to_str()):
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, add_prefix_space=True, **options)
            _add_prefix_space(tokenizer)
    if tokenizer.is_fast:
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    return tokenizer, config


_NO_PREFIX_SPACE = re.compile(r'"add_prefix_space": ?false')


def _add_prefix_space(tokenizer: Any) -> None:  # noqa: ANN401
    """Lets a byte-level tokenizer see a blank before each word, as it does inside running text."""
    from tokenizers import Tokenizer

    state = json.loads(tokenizer.backend_tokenizer.to_str())
    parts = [state["pre_tokenizer"], *(state["pre_tokenizer"] or {}).get("pretokenizers", [])]
    for part in parts:
        if part and "add_prefix_space" in part:
            part["add_prefix_space"] = True
    tokenizer.backend_tokenizer.pre_tokenizer = Tokenizer.from_str(json.dumps(state)).pre_tokenizer


def load_model(kind: Any, folder: Path, whole: bool = False, **changes: Any) -> "torch.nn.Module":  # noqa: ANN401
    """The model of a folder.

    Args:
        kind: class of transformers that finds the model's own.
        folder: where it is, see `checked`.
        whole: whether all weights must be there; otherwise those that are missing, of a new head, are drawn.
        changes: entries of the configuration that are to be others.

    Raises:
        StorageError: the folder cannot be loaded, or lacks weights.
    """
    import torch

    options: dict[str, Any] = {"use_safetensors": True, "local_files_only": True, "output_loading_info": True}
    with quiet(), _as_storage_error(folder):
        _check_size(folder)
        model, found = kind.from_pretrained(folder, trust_remote_code=False, dtype=torch.float32, **options, **changes)
    if whole and found["missing_keys"]:
        raise StorageError(f"{folder} lacks weights: {', '.join(sorted(found['missing_keys']))[:200]}")
    loaded: torch.nn.Module = model.eval()
    return loaded


def _check_size(folder: Path) -> None:
    """The model that the configuration describes is no larger than the weights.

    Raises:
        ValueError: it is.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    kind: Any = AutoModel  # its method has no types in some versions
    with torch.device("meta"):
        described = kind.from_config(config, trust_remote_code=False)
    numbers = sum(parameter.numel() for parameter in described.parameters())
    there = sum(math.prod(shape) for path in folder.glob("*.safetensors") for shape in tensors_in(path).values())
    if numbers > _ADDED * there + 1_000_000:
        raise ValueError(f"its config.json describes a model of {numbers} numbers, its weights hold {there}")


@contextmanager
def _as_storage_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # transformers raises many kinds for a folder that it cannot load
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise StorageError(f"{folder} cannot be loaded as an encoder ({type(error).__name__}: {reason})") from error
