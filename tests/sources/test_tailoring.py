"""Tailoring: which entries of a dictionary stay."""

from tagweave.sources.tailoring import tailor

TEXTS = [["Wal", "-", "Mart", "sells", "salt"], [], ["The", "AUSTRALIAN", "salt"], ["lakes"]]


def test_an_entry_stays_if_its_canonical_name_occurs_in_any_case_and_however_it_is_cut() -> None:
    entries = {"Wal-Mart": ["WM", "WM"], "Australian": [], "table salt": ["salt"], "Mar": ["Wal"]}
    assert tailor(entries, TEXTS) == {"Wal-Mart": ("Wal-Mart", "WM"), "Australian": ("Australian",)}


def test_names_do_not_reach_over_the_end_of_a_text() -> None:
    assert tailor({"salt lakes": []}, TEXTS) == {}


def test_two_entries_may_differ_by_case_only() -> None:
    assert list(tailor({"SALT": [], "salt": ["NaCl"]}, TEXTS)) == ["SALT", "salt"]


def test_nothing_in_nothing() -> None:
    assert tailor({}, TEXTS) == {}
    assert tailor({"salt": []}, []) == tailor({"salt": []}, [[]]) == tailor({" ": []}, TEXTS) == {}
