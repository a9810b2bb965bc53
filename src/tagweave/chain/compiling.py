"""How the functions of the chain are compiled, and what their arrays are called."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
Potentials: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile at the first call, keep the result on disk, release the interpreter lock, allow sums in any order."""
    decorate = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
    return cast(Function, decorate(function))


def compiled_as_written(function: Function) -> Function:
    """The same for arithmetic whose order matters."""
    decorate = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
    return cast(Function, decorate(function))
