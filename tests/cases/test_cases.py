"""All acceptance cases: the folders in `data/`, checked by the adapters in `checks/`."""

from dataclasses import replace
from pathlib import Path

import pytest

from cases.harness import Check, all_checks, run


@pytest.mark.parametrize("item", [pytest.param(item, id=f"{item.case}-{item.kind}") for item in all_checks()])
def test_case(item: Check, tmp_path: Path) -> None:
    run(replace(item, scratch=tmp_path))
