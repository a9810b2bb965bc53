"""The corpus that ships with tagweave: gardening sentences, dictionaries, and the sources made of them.

`read_demo` reads a split with the votes of every source of `tagweave.demo.rules`; `run_demo` is the main job on it. The
guidelines of the gold annotation are in `README.md` beside the text files.
"""

from typing import TYPE_CHECKING

from tagweave.demo.corpus import Split, read_demo

if TYPE_CHECKING:
    from tagweave.demo.running import DemoReport, demo_training, run_demo

__all__ = ["DemoReport", "Split", "demo_training", "read_demo", "run_demo"]


def __getattr__(name: str) -> object:
    """Names that need the models are loaded when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module 'tagweave.demo' has no attribute {name!r}")
    from tagweave.demo import running

    return getattr(running, name)
