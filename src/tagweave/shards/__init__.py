"""Work over the parts of something large: `map_shards`, on one machine or on a Ray cluster.

A shard is a file, or a description of a piece of work; a function makes one output file of it. What is done is known
by its content, so that a run that ended in whatever way goes on where it stopped, and to the same bytes.
"""

from tagweave.shards.engines import ENGINES
from tagweave.shards.manifest import Entry, Manifest
from tagweave.shards.running import map_shards
from tagweave.shards.working import Loading, Shard

__all__ = ["ENGINES", "Entry", "Loading", "Manifest", "Shard", "map_shards"]
