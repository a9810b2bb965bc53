import os
import signal
import time

import pytest

from tagweave.stopping import Stopped, stoppable, unbroken


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_what_is_under_way(number: signal.Signals, code: int) -> None:
    before, tidied = signal.getsignal(number), False
    with pytest.raises(Stopped) as found, stoppable():
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)
        finally:
            tidied = True
    assert (found.value.code, tidied) == (code, True)
    assert signal.getsignal(number) is before


def test_more_signals_do_not_disturb_the_tidying() -> None:
    tidied = False
    with pytest.raises(Stopped), stoppable():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            tidied = True
    assert tidied


def test_a_signal_that_comes_while_an_object_goes_is_not_lost() -> None:
    class Goes:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

    with pytest.raises(Stopped), stoppable():
        going = Goes()
        del going
        time.sleep(5)


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.05)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_moment_that_must_not_be_cut_is_not(number: signal.Signals) -> None:
    done = []
    with pytest.raises(Stopped) as found, stoppable():
        with unbroken():
            os.kill(os.getpid(), number)
            time.sleep(0.01)
            done.append("whole")
        time.sleep(5)
        done.append("not stopped")
    assert (found.value.code, done) == (128 + number, ["whole"])
