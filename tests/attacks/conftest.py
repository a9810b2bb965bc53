"""What the attacks share: the command line, and a tiny encoder."""

from cli.conftest import encoder, tagweave

__all__ = ["encoder", "tagweave"]
