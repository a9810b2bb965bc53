from pathlib import Path

import pytest

from benchmark.tiny_data import NAMES, WORDS, write_data
from tiny_encoder import build


@pytest.fixture(scope="session")
def tiny_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of benchmark data."""
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An encoder that knows the words of the data."""
    return build(tmp_path_factory.mktemp("encoder") / "tiny", [*NAMES, *WORDS])


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("TAGWEAVE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
