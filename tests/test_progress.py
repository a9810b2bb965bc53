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


def test_what_goes_on_counts_what_was_done_before(
    shown: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PLAIN_INTERVAL", -1)
    assert list(progress.track("cd", "reading", total=4, done=2)) == ["c", "d"]
    assert capsys.readouterr() == ("", "reading: 3/4\nreading: 4/4\n")


def test_a_bar_in_a_terminal(shown: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("rich.progress.track", lambda items, description, **settings: given.append(settings) or items)
    assert list(progress.track("cd", "reading", total=4, done=2)) == ["c", "d"]
    assert given[0]["total"] == 4 and given[0]["completed"] == 2
    assert capsys.readouterr().out == ""
