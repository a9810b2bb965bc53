"""Token classifiers that learn from soft labels."""

from tagweave.tagger.model import Epoch, Tagger

__all__ = ["Epoch", "Tagger"]
