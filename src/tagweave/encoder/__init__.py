"""Encoders and what is made with them: windows of long documents, embeddings of words, label scores of words."""

from tagweave.encoder.encoder import (
    DEFAULT,
    DEFAULT_PACKAGE,
    PIECES_PER_WORD,
    Batch,
    Encoder,
    Precision,
    WordPieces,
    device,
    locate,
    precision,
    require_bert,
)

__all__ = [
    "DEFAULT",
    "DEFAULT_PACKAGE",
    "PIECES_PER_WORD",
    "Batch",
    "Encoder",
    "Precision",
    "WordPieces",
    "device",
    "locate",
    "precision",
    "require_bert",
]
