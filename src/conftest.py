"""Which files with examples are left out of the tests: those that need a package that is not there."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["tagweave/chain/triton_*.py"]
