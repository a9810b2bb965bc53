"""The clock: what it stops, what it leaves alone, and what others can read."""

import signal
import time

import pytest

from tagweave.annotating.clock import Beat, Clock, TimeUp


def wait_for_time_up() -> float:
    begin = time.monotonic()
    with pytest.raises(TimeUp):
        while time.monotonic() < begin + 5:
            pass
    return time.monotonic() - begin


def test_work_is_stopped_in_time() -> None:
    clock = Clock(0.2)
    with clock.running():
        clock.start(0, 0, 1)
        assert 0.15 < wait_for_time_up() < 0.6
        clock.stop()


def test_who_catches_it_is_stopped_again() -> None:
    clock = Clock(0.1)
    with clock.running():
        clock.start(0, 0, 1)
        wait_for_time_up()
        assert wait_for_time_up() < 0.5
        clock.stop()


def test_each_piece_has_its_own_time() -> None:
    clock = Clock(0.2)
    with clock.running():
        for number in range(4):
            clock.start(0, number, 1)
            time.sleep(0.1)
            clock.stop()
        time.sleep(0.3)


def test_no_limit_sets_no_signal() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with Clock(0).running():
        assert signal.getsignal(signal.SIGALRM) == before
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_another_use_of_the_signal_is_put_back() -> None:
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        with Clock(5).running():
            assert signal.getsignal(signal.SIGALRM) != before
        signal.raise_signal(signal.SIGALRM)
        assert rung == [1]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_beat_says_what_is_worked_on() -> None:
    beat = [0.0] * len(Beat())
    clock = Clock(1, beat)
    clock.start(2, 7, 3)
    shown = Beat(*beat)
    assert (shown.source, shown.document, shown.documents) == (2, 7, 3)
    assert time.monotonic() - shown.started < 1
    clock.stop()
    assert Beat(*beat).started == 0
