"""What the tests of commands share."""

from pathlib import Path

import pytest

import tiny_encoder
from cli.running import CommandLine


@pytest.fixture
def tagweave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """Runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAGWEAVE_CACHE", str(tmp_path / ".cache"))
    return CommandLine(monkeypatch)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny encoder that knows the words of `running.news`."""
    words = ["Ada", "Lovelace", "saw", "Oslo", "Bo", "nobody", "came"]
    return tiny_encoder.build(tmp_path_factory.mktemp("encoder"), words)
