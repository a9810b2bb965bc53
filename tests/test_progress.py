from collections.abc import Iterator

import pytest

from tagweave import progress


@pytest.fixture
def shown() -> Iterator[None]:
    progress.show()
    yield
    progress.show(False)


def test_silent_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    progress.say("loud")
    assert list(progress.track(range(3), "counting")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_lines_on_stderr_where_there_is_no_terminal(
    shown: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PLAIN_INTERVAL", -1)
    assert list(progress.track("ab", "reading", total=2)) == ["a", "b"]
    assert capsys.readouterr() == ("", "reading: 1/2\nreading: 2/2\n")
