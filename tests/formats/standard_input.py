"""Bytes as standard input."""

import io
import sys

import pytest


def standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Let the test read these bytes from standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
