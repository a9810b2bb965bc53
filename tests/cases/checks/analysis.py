"""Adapters for what the analysis of sources says."""

import tagweave
from cases.harness import Check, check


@check("redundant_pairs")
def redundant_pairs(item: Check) -> None:
    """The pairs of sources that the analysis calls the same."""
    found = tagweave.analyze(tagweave.read(item.path), None).findings.redundant
    assert {(pair.first, pair.second) for pair in found if pair.overlap == 1} == {
        tuple(names) for names in item.expected["value"]
    }
