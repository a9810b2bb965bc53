"""Numbers of sources, and how a report shows them."""

import json
from collections import Counter

from tagweave.annotating.statistics import Described, Report, Statistics, add_up
from tagweave.annotations import Span


def test_votes_are_counted_by_what_they_say() -> None:
    done = Statistics()
    for votes in ([Span(0, 1, "LOC"), Span(1, 2, "O")], [], None):
        done.count(votes)
    assert (done.documents, done.spans, done.outside, done.abstained) == (3, 1, 1, 1)


def test_statistics_add_up_and_survive_a_file() -> None:
    one = Statistics(3, 0.5, 2, 1, 1, 1, 1, "first", Counter(asked=2))
    total: dict[str, Statistics] = {}
    for each in (one, Statistics(first_failure="second", counters=Counter(asked=1, kept=4))):
        add_up(total, {"s": Statistics.from_json(json.loads(json.dumps(each.to_json())))})
    assert total["s"] == Statistics(3, 0.5, 2, 1, 1, 1, 1, "first", Counter(asked=3, kept=4))
    assert one.counters == Counter(asked=2)


def test_a_report_shows_what_happened() -> None:
    sources = (Described("towns", "Towns.", ("LOC",)), Described("model", "", ("LOC", "PER")))
    done = {
        "towns": Statistics(10, 2.0, 5),
        "model": Statistics(10, 0.0, 1, 2, 3, 2, 1, "oh", Counter(requests=7)),
    }
    table = Report(10, 2.5, sources, done).table()
    assert table.records() == [
        {
            "source": "towns",
            "types": "LOC",
            "spans": 5,
            "O votes": 0,
            "abstained": 0,
            "failures": 0,
            "timeouts": 0,
            "seconds": 2.0,
            "documents/s": 5,
            "counted": "",
            "description": "Towns.",
        },
        {
            "source": "model",
            "types": "LOC, PER",
            "spans": 1,
            "O votes": 2,
            "abstained": 3,
            "failures": 2,
            "timeouts": 1,
            "seconds": 0.0,
            "documents/s": None,
            "counted": "requests 7",
            "description": "",
        },
    ]


def test_a_source_that_never_ran_has_a_row() -> None:
    table = Report(0, 0.1, (Described("towns", "", ("LOC",)),), {}).table()
    assert [record["spans"] for record in table.records()] == [0]
