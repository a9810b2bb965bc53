"""The chain: all exact algorithms for a first-order chain of labels, as pure functions.

`posterior` holds the numpy functions that are exported here. `differentiable` holds the same for torch, with gradients;
it is not imported here, so that reading and scoring stay light.
"""

from tagweave.chain.posterior import Posterior, best_path, entropy, forward_backward, log_partition

__all__ = ["Posterior", "best_path", "entropy", "forward_backward", "log_partition"]
