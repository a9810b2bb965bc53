from pathlib import Path

import pytest

from benchmark.tiny_data import rounds, write_cell
from tagweave.benchmark import published, tables
from tagweave.benchmark.cells import Cell
from tagweave.benchmark.datasets import DATASETS
from tagweave.benchmark.facts import facts_of
from tagweave.benchmark.figures import draw_figures, strongest_baseline
from tagweave.benchmark.gathering import Results, gather, read_reasons
from tagweave.benchmark.systems import DEFAULT_SYSTEMS
from tagweave.errors import FormatError, UsageError


@pytest.fixture
def results(tmp_path: Path) -> Results:
    for seed, f1 in enumerate((80.0, 84.0)):
        cell = Cell("ncbi-disease", "chmm-alt", seed=seed)
        chosen = {"round": 1, "output": "label-model"}
        write_cell(tmp_path, cell, f1, rounds=rounds((70.0, 60.0), (f1, 66.0)), chosen=chosen)
    write_cell(tmp_path, Cell("ncbi-disease", "chmm"), 79.0, seconds={}, peak_gigabytes=None)
    write_cell(tmp_path, Cell("ncbi-disease", "hmm"), 78.0)
    write_cell(tmp_path, Cell("bc5cdr", "hmm"), 70.0, "dev")
    write_cell(tmp_path, Cell("bc5cdr", "hmm", gold_free=True), 60.0, "dev")
    write_cell(tmp_path, Cell("bc5cdr", "hmm+bert", encoder="other"), 50.0, "dev", rounds=rounds())
    return gather(tmp_path)[0]


def row(table: tables.Table, **wanted: object) -> dict[str, object]:
    [found] = [r for r in table.records() if all(r[name] == value for name, value in wanted.items())]
    return dict(found)


def test_ways_of_running_are_apart_and_systems_without_an_encoder_in_all(results: Results, tmp_path: Path) -> None:
    found = gather(tmp_path)
    assert [(r.way.gold_free, r.way.encoder) for r in found] == [(False, "default"), (False, "other"), (True, "")]
    assert results is not found[0]
    assert found[0].found.keys() == results.found.keys()
    assert set(found[1].found) == {("hmm+bert", "bc5cdr"), ("hmm", "bc5cdr"), ("hmm", "ncbi-disease")}
    assert found[2].get("hmm", "bc5cdr").mean() == 60.0  # type: ignore[union-attr]


def test_the_mean_and_deviation_over_seeds_stand_beside_the_published(results: Results) -> None:
    found = row(tables.overview_table(results), name="`chmm-alt`")
    assert found["system"] == "CHMM-ALT"
    assert found["ncbi-disease"] == "82.00 ± 2.83 (85.02)"
    assert found["conll-2003"] == "- (75.54)"
    assert row(tables.overview_table(results), name="`hmm`")["bc5cdr, dev"] == "70.00 (80.57)"


def test_details(results: Results) -> None:
    found = row(tables.details_table(results, "ncbi-disease"), system="CHMM-ALT")
    assert found == {
        "system": "CHMM-ALT",
        "on": "test",
        "seeds": 2,
        "precision": 83.0,
        "recall": 81.0,
        "F1": 82.0,
        "±": pytest.approx(8**0.5),
        "paper P": 87.92,
        "paper R": 82.47,
        "paper F1": 85.02,
        "encoder": "BioBERT",
        "F1 - paper": pytest.approx(-3.02),
    }


def test_another_way_stands_beside_the_main_one_with_what_runs_in_it_alone(results: Results, tmp_path: Path) -> None:
    other, gold_free = gather(tmp_path)[1:]
    [found] = tables.other_way_table(other, results).records()
    assert (found["system"], found["F1"], found["F1 above"], found["fit, s"]) == ("hmm+bert", 50.0, None, 20.0)
    [found] = tables.other_way_table(gold_free, results).records()
    assert (found["system"], found["F1"], found["F1 above"], found["paper F1"]) == ("HMM", 60.0, 70.0, 80.57)


def test_what_alternate_training_gains_is_of_the_seeds_that_both_have(results: Results) -> None:
    found = row(tables.alternate_table(results), **{"data set": "ncbi-disease", "label model": "CHMM"})
    assert (found["alone"], found["ALT"], found["gain"]) == (79.0, 80.0, 1.0)
    assert (found["paper alone"], found["paper ALT"]) == (78.88, 85.02)
    assert len(tables.alternate_table(results).rows) == 16


def test_a_label_model_without_chance_has_one_seed_for_all(results: Results, tmp_path: Path) -> None:
    for seed, f1 in enumerate((80.0, 83.0)):
        write_cell(tmp_path, Cell("ncbi-disease", "hmm-alt", seed=seed), f1)
    found = row(tables.alternate_table(gather(tmp_path)[0]), **{"data set": "ncbi-disease", "label model": "HMM"})
    assert (found["alone"], found["ALT"]) == (78.0, 81.5)


def test_rounds_and_what_was_chosen(results: Results) -> None:
    found = row(tables.rounds_table(results), output="label model")
    assert (found["I"], found["II-1"], found["on"]) == (70.0, 82.0, "test")
    chosen = tables.chosen_table(results).rows
    assert chosen == tuple(("ncbi-disease", "CHMM-ALT", seed, 1, "label-model") for seed in (0, 1))


def test_differences_have_their_reasons(results: Results, tmp_path: Path) -> None:
    (tmp_path / "reasons.toml").write_text('[bc5cdr]\nhmm = "scored on dev"\n', encoding="utf-8")
    found = tables.differences_table(results, read_reasons(tmp_path))
    assert [(r["data set"], r["system"], r["reason"]) for r in found.records()] == [
        ("ncbi-disease", "HMM", "no reason recorded"),
        ("ncbi-disease", "CHMM-ALT", "no reason recorded"),
        ("bc5cdr", "HMM", "scored on dev"),
    ]
    assert found.records()[2]["difference"] == pytest.approx(-10.57)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("[bc5dr]\nhmm = 'x'", UsageError, "Did you mean 'bc5cdr'"),
        ("[bc5cdr]\nhm = 'x'", UsageError, "Did you mean 'hmm'"),
        ("[bc5cdr]\nhmm = 3", FormatError, "must hold lines"),
        ("bc5cdr", FormatError, "reasons.toml"),
    ],
)
def test_reasons_of_nothing_are_refused(text: str, error: type[Exception], message: str, tmp_path: Path) -> None:
    (tmp_path / "reasons.toml").write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        read_reasons(tmp_path)


def test_missing_cells_are_counted(results: Results) -> None:
    missing = results.missing()
    assert ("chmm", "bc5cdr") in missing
    assert ("chmm", "ncbi-disease") not in missing
    assert len(missing) == len(DATASETS) * len(DEFAULT_SYSTEMS) - 4


def test_cost(results: Results) -> None:
    table = tables.cost_table(results)
    assert row(table, system="CHMM-ALT")["ncbi-disease, s"] == 20.0
    assert row(table, system="CHMM")["ncbi-disease, GB"] is None


def test_settings_that_are_no_defaults(results: Results) -> None:
    found = tables.settings_table(results).records()
    assert {"part": "alternate", "setting": "rounds", "value": "3", "cells": 2} in found
    assert not any(r["setting"] in ("seed", "encoder") for r in found)


def test_statistics_and_sources_stand_beside_the_published(tiny_data: Path) -> None:
    facts = {"laptop-review": facts_of(tiny_data, "laptop-review")}
    table = tables.statistics_table(facts)
    assert table.rows[0] == ("documents in train", "- (14041)", "- (593)", "- (500)", "12 (2436)")
    assert table.rows[3][4] == "9.0 (16.4)"
    assert table.rows[5][4] == "3 (4)"
    sources = tables.sources_table(facts["laptop-review"], "laptop-review")
    assert row(sources, source="tag-names")["precision"] == 100.0
    assert row(sources, source="tag-names")["paper F1"] is None
    assert row(sources, source="tag-iStuff")["paper P"] == 26.67


def test_figures_have_the_same_bytes_each_time(results: Results, tmp_path: Path) -> None:
    first = draw_figures(results, tmp_path / "a", "page-")
    draw_figures(results, tmp_path / "b", "page-")
    for name in first.values():
        text = (tmp_path / "a" / name).read_text(encoding="utf-8")
        assert text == (tmp_path / "b" / name).read_text(encoding="utf-8")
        assert "ncbi-disease" in text
    assert strongest_baseline(results, "ncbi-disease") == ("hmm", 78.0)


def test_printed_numbers_fit_each_other() -> None:
    for printed in published.MAIN_TABLE:
        for dataset, (precision, recall, f1) in printed.scores.items():
            made = 2 * precision * recall / (precision + recall)
            assert f1 == pytest.approx(made, abs=0.15), (printed.title, dataset)
    assert published.published_f1("chmm-alt", "bc5cdr") == published.ALTERNATE_TABLE["chmm-alt"]["bc5cdr"]
