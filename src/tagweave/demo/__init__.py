"""The corpus that ships with tagweave: gardening sentences, dictionaries, and the sources made of them.

`read_demo` reads a split with the votes of every source of `tagweave.demo.rules`; `run_demo` is the main job on it. The
guidelines of the gold annotation are in `README.md` beside the text files.
"""

from tagweave.demo.corpus import Split, read_demo

__all__ = ["Split", "read_demo"]
