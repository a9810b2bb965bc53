"""What every test may use: the folder of benchmark data, where there is one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tagweave import progress

# The first example of a test may compile a kernel, and machines differ: how long an example takes decides nothing.
settings.register_profile("tagweave", deadline=None)
settings.load_profile("tagweave")

# Who starts the tests in the background may have signals ignored; processes that tests start would inherit that.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.fixture(autouse=True)
def quiet_afterwards() -> Iterator[None]:
    """Progress is silent again after a test that ran a command."""
    yield
    progress.show(False)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder named by `TAGWEAVE_DATA`; a test that asks for it is skipped where the variable is not set."""
    name = os.environ.get("TAGWEAVE_DATA", "")
    if not name:
        pytest.skip("TAGWEAVE_DATA names no folder of benchmark data")
    folder = Path(name)
    if not folder.is_dir():
        pytest.fail(f"TAGWEAVE_DATA names {name}, which is not a folder")
    return folder
