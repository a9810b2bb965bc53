"""Corpora that are larger than memory, in parts on disk or in the hands of workers."""

from tagweave.stored.corpora import Spool, StoredCorpus, StoredObservations, observed, parts_of

__all__ = ["Spool", "StoredCorpus", "StoredObservations", "observed", "parts_of"]
