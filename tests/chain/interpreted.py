"""Runs the Triton kernels of the chain in Triton's interpreter: `python interpreted.py CHAINS RESULTS`.

Triton decides when it is imported whether kernels are compiled or interpreted, so this is a process of its own, with
`TRITON_INTERPRET=1`. CHAINS is a file of numpy with `NAME/start`, `NAME/transitions`, `NAME/evidence` and
`NAME/offsets` for each chain; RESULTS gets what comes out, by name.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tagweave.chain import differentiable

FUNCTIONS = ("log_partition", "entropy")
PARTS = ("start", "transitions", "evidence")
Arrays = dict[str, NDArray[Any]]


def solve(potentials: tuple[Tensor, Tensor, Tensor], offsets: Tensor) -> Arrays:
    """What the kernels say, and the values and gradients of the torch functions that are built on them."""
    from tagweave.chain import triton_kernels

    found = {}
    for name, keep_pairs in (("sentence", False), ("token", True)):
        values, marginals, pairs = triton_kernels.forward_backward(*potentials, offsets, keep_pairs)
        found |= {"values": values, "marginals": marginals, f"pairs by {name}": pairs}
    found["values alone"] = triton_kernels.log_partition(*potentials, offsets)
    for name in FUNCTIONS:
        leaves = [part.clone().requires_grad_() for part in potentials]
        result = getattr(differentiable, name)(*leaves, offsets)
        result.backward(torch.arange(1.0, len(offsets), dtype=result.dtype))
        found[name] = result.detach()
        found |= {f"{name}/{part}": leaf.grad for part, leaf in zip(PARTS, leaves, strict=True)}
    return {name: tensor.numpy() for name, tensor in found.items()}


def main(chains: Path, results: Path) -> None:
    torch.set_num_threads(1)
    differentiable.log_partition_on_cpu = differentiable.log_partition_in_triton
    differentiable.entropy_on_cpu = differentiable.entropy_in_triton
    arrays = np.load(chains)
    found: Arrays = {}
    for name in dict.fromkeys(key.split("/")[0] for key in arrays.files):
        start, transitions, evidence, offsets = (
            torch.from_numpy(arrays[f"{name}/{part}"]) for part in (*PARTS, "offsets")
        )
        with np.errstate(all="ignore"):
            solved = solve((start, transitions, evidence), offsets)
        found |= {f"{name}/{key}": array for key, array in solved.items()}
    np.savez(results, **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
