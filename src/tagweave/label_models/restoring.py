"""What a saved label model must hold: arrays of known names and shapes, before any kernel reads them."""

from collections.abc import Container, Mapping, Sequence
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tagweave.observations import Silence

Axis = str | int
"""Length of an axis: a number, `sources`, `links`, `types`, `classes` (types and none), `votes` (also silence) or
`labels` of the model, or a name of its own for a length that is the same wherever it stands."""

CONFIG_KEYS = {"kind", "tagweave", "label_model", "settings", "types", "sources", "links"}
CONFIG_KEYS |= {"silence", "rates", "chosen", "history"}
"""What stands in the configuration of a label model."""


def check_config(config: Mapping[str, Any]) -> None:
    """Look for what no version of tagweave writes.

    Raises:
        ValueError: there is something.
    """
    unknown = sorted(set(config) - CONFIG_KEYS)
    if unknown:
        raise ValueError(f"unknown in the configuration: {', '.join(unknown)}")
    if not isinstance(config.get("settings"), dict):
        raise ValueError("settings is no table")


def rates_in(config: Mapping[str, Any], types: Sequence[str]) -> dict[str, list[float]]:
    """How often labels occur in what each source says that gives probabilities; older versions wrote none.

    Raises:
        ValueError: they are no shares of the labels of these types.
    """
    found = config.get("rates", {})
    if not isinstance(found, dict) or not set(found) <= set(config["sources"]):
        raise ValueError("rates is no table of sources")
    for name, rates in found.items():
        if not isinstance(rates, list) or len(rates) != 1 + 2 * len(types):
            raise ValueError(f"the rates of {name!r} are not those of {1 + 2 * len(types)} labels")
        if not all(isinstance(rate, float) and 0 < rate <= 1 for rate in rates):
            raise ValueError(f"the rates of {name!r} are no shares")
    return found


def silence_in(config: Mapping[str, Any]) -> Silence:
    """What silence means; older versions wrote it among the settings only.

    Raises:
        ValueError: it is no meaning of silence.
    """
    silence = config.get("silence", config["settings"].get("silence"))
    if silence not in get_args(Silence):
        raise ValueError(f"silence is {silence!r}")
    return cast(Silence, silence)


def shares_in(config: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Settings that dev chose, numbers from 0 to 1; older versions wrote none.

    Raises:
        ValueError: they are something else.
    """
    found = config.get("chosen", {})
    if not isinstance(found, dict) or not set(found) <= set(names):
        raise ValueError("chosen is no table of settings that are chosen")
    for name, share in found.items():
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ValueError(f"{name} is no number from 0 to 1")
    return {name: float(share) for name, share in found.items()}


def check_arrays(
    arrays: Mapping[str, NDArray[Any]],
    shapes: Mapping[str, Sequence[Axis]],
    lengths: Mapping[str, int],
    counts: Container[str] = (),
) -> None:
    """Compare arrays from a file with what a model has.

    Args:
        arrays: as they were read.
        shapes: axes of each array of the model.
        lengths: length of each axis that is known.
        counts: names of the arrays of whole numbers.

    Raises:
        ValueError: an array is missing, or is of another shape or kind, or holds infinite numbers.

    >>> check_arrays({"start": np.ones(3)}, {"start": ("labels",)}, {"labels": 5})
    Traceback (most recent call last):
    ValueError: 'start' has the shape (3,), not (5,)
    """
    known = dict(lengths)
    for name, axes in shapes.items():
        if name not in arrays:
            raise ValueError(f"there is no array {name!r}")
        array = arrays[name]
        if len(axes) == array.ndim:
            for axis, length in zip(axes, array.shape, strict=True):
                known.setdefault(str(axis), length if isinstance(axis, str) else axis)
        wanted = tuple(known.get(str(axis), 0) for axis in axes)
        if array.shape != wanted:
            raise ValueError(f"{name!r} has the shape {array.shape}, not {wanted}")
        kind = "i" if name in counts else "f"
        if array.dtype.kind != kind or array.dtype.itemsize < 4 or np.isinf(array).any():
            raise ValueError(f"{name!r} holds {array.dtype}, or infinite numbers")
    unknown = sorted(set(arrays) - set(shapes))
    if unknown:
        raise ValueError(f"there is an array {unknown[0]!r}, which the model does not have")
