"""The tables of the paper from results, each beside the published numbers. Scores are in percent."""

import statistics
from collections.abc import Mapping

from tagweave.alternate import OUTPUTS
from tagweave.benchmark import published
from tagweave.benchmark.datasets import DATASETS
from tagweave.benchmark.facts import Facts
from tagweave.benchmark.gathering import Result, Results
from tagweave.benchmark.systems import System, defaults, parse_system
from tagweave.report import Cell, Table

NOTABLE = 3.0
"""A difference to the published F1 over which a reason is asked for."""

NO_REASON = "no reason recorded"


def statistics_table(facts: Mapping[str, Facts]) -> Table:
    """Table 1: how large the data sets are, the paper's number in brackets."""
    rows: list[tuple[Cell, ...]] = []
    for title, key in (("train", "train"), ("dev", "dev"), ("test", "test")):
        rows.append((f"documents in {title}", *(_beside(_documents(facts, d, key), d, key) for d in DATASETS)))
    rows.append(("mean tokens", *(_beside(_mean_tokens(facts, d), d, "tokens") for d in DATASETS)))
    counts = {d: (len(facts[d]["types"]), facts[d]["sources"]["paper"]) for d in facts}
    rows.append(("types", *(_beside(counts[d][0] if d in counts else None, d, "types") for d in DATASETS)))
    rows.append(("sources", *(_beside(counts[d][1] if d in counts else None, d, "sources") for d in DATASETS)))
    return Table("", ("", *DATASETS), tuple(rows))


def _documents(facts: Mapping[str, Facts], dataset: str, split: str) -> int | None:
    return int(facts[dataset]["documents"][split]) if dataset in facts else None


def _mean_tokens(facts: Mapping[str, Facts], dataset: str) -> float | None:
    if dataset not in facts:
        return None
    documents: int = sum(facts[dataset]["documents"].values())
    return round(int(facts[dataset]["tokens"]) / documents, 1)


def _beside(ours: float | None, dataset: str, key: str) -> str:
    return f"{'-' if ours is None else ours} ({published.STATISTICS[dataset][key]})"


def overview_table(results: Results) -> Table:
    """Table 2: F1 of every system, mean and deviation over the seeds, with the published F1 in brackets."""
    rows = []
    for system in results.systems:
        cells = [_overview(results.get(system, dataset), system, dataset) for dataset in DATASETS]
        rows.append((published.title_of(system), f"`{system}`", *cells))
    return Table("", ("system", "name", *(_heading(results, dataset) for dataset in DATASETS)), tuple(rows))


def _overview(result: Result | None, system: str, dataset: str) -> str:
    printed = published.published_f1(system, dataset)
    beside = "" if printed is None else f" ({printed:.2f})"
    return f"{'-' if result is None else _with_deviation(result)}{beside}"


def _with_deviation(result: Result) -> str:
    deviation = result.deviation()
    return f"{result.mean():.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")


def _heading(results: Results, dataset: str) -> str:
    found = [result for (_, d), result in results.found.items() if d == dataset]
    return f"{dataset}, dev" if found and all(result.split == "dev" for result in found) else dataset


_SCORED = ("on", "seeds", "precision", "recall", "F1", "±")


def _scored(result: Result) -> tuple[Cell, ...]:
    """What `_SCORED` names of a result."""
    scores = (result.mean("precision"), result.mean("recall"), result.mean(), result.deviation())
    return (result.split, result.seeds, *scores)


def other_way_table(results: Results, main: Results) -> Table:
    """What was run in another way than the main results, beside the F1 of the same system there."""
    columns = ("data set", "system", *_SCORED, "F1 above", "paper F1", "encoder", "fit, s")
    rows: list[tuple[Cell, ...]] = []
    for dataset in DATASETS:
        for system in results.own_systems:
            result, above = results.get(system, dataset), main.get(system, dataset)
            if result is not None:
                beside = (None if above is None else above.mean(), published.published_f1(system, dataset))
                ours = (dataset, published.title_of(system), *_scored(result))
                rows.append((*ours, *beside, _published_encoder(system, dataset), result.fit_seconds()))
    return Table("", columns, tuple(rows), (*[2] * (len(columns) - 1), 0))


def details_table(results: Results, dataset: str) -> Table:
    """Precision, recall and F1 of every system on a data set, beside the published ones."""
    columns = ("system", *_SCORED, "paper P", "paper R", "paper F1", "encoder", "F1 - paper")
    rows: list[tuple[Cell, ...]] = []
    for system in results.systems:
        result = results.get(system, dataset)
        printed, f1 = published.published_scores(system, dataset), published.published_f1(system, dataset)
        if result is None and f1 is None:
            continue
        ours = ("-", *[None] * (len(_SCORED) - 1)) if result is None else _scored(result)
        theirs = (None, None, f1) if printed is None else tuple(printed)
        difference = None if result is None or f1 is None else result.mean() - f1
        rows.append((published.title_of(system), *ours, *theirs, _published_encoder(system, dataset), difference))
    return Table("", columns, tuple(rows))


def _published_encoder(system: str, dataset: str) -> str | None:
    row = next((row for row in published.MAIN_TABLE if row.system == system), None)
    if row is None:
        return published.ENCODERS[dataset] if system in published.ALTERNATE_TABLE else None
    return published.ENCODERS[dataset] if row.encoder and dataset in row.scores else None


def alternate_table(results: Results) -> Table:
    """Table 3: F1 of label models without and with alternate training, and what it gains, ours and the paper's.

    Both are means over the seeds that both were run with.
    """
    columns = ("data set", "label model", "alone", "ALT", "gain", "paper alone", "paper ALT", "paper gain")
    rows: list[tuple[Cell, ...]] = []
    for dataset in DATASETS:
        for system in published.ALTERNATE_TABLE:
            alone = system.removesuffix("-alt")
            first, second = results.get(alone, dataset), results.get(system, dataset)
            if first is not None and second is not None:
                first, second = first.on_seeds_of(second), second.on_seeds_of(first)
            ours = [None if result is None else result.mean() for result in (first, second)]
            theirs = [published.published_f1(alone, dataset), published.published_f1(system, dataset)]
            rows.append((dataset, published.title_of(alone), *ours, _gain(ours), *theirs, _gain(theirs)))
    return Table("", columns, tuple(rows))


def _gain(pair: list[float | None]) -> float | None:
    first, second = pair
    return None if first is None or second is None else second - first


def rounds_table(results: Results) -> Table:
    """Figure 4 as numbers: F1 of both outputs after each round, the mean of the seeds that came so far."""
    found = [(key, result) for key, result in results.found.items() if parse_system(key[0]).alternate]
    longest = max((len(rounds_of(result, "tagger")) for _, result in found), default=1)
    names = ("I", *(f"II-{number}" for number in range(1, longest)))
    rows: list[tuple[Cell, ...]] = []
    for (system, dataset), result in sorted(found, key=lambda item: (DATASETS.index(item[0][1]), item[0][0])):
        for output in OUTPUTS:
            scores: list[float | None] = [*rounds_of(result, output)]
            row = (dataset, result.split, published.title_of(system), output.replace("-", " "))
            rows.append((*row, *scores, *[None] * (longest - len(scores))))
    return Table("", ("data set", "on", "system", "output", *names), tuple(rows))


def rounds_of(result: Result, output: str) -> list[float]:
    """Mean F1 of an output after each round."""
    runs = [[entry["scores"][output][result.split]["f1"] for entry in r["rounds"]] for r in result.records]
    return [statistics.fmean(run[n] for run in runs if len(run) > n) for n in range(max(map(len, runs)))]


def chosen_table(results: Results) -> Table:
    """Which round and output of each alternate training counts."""
    rows: list[tuple[Cell, ...]] = []
    for (system, dataset), result in results.found.items():
        if parse_system(system).alternate:
            for record in result.records:
                chosen = record["chosen"]
                named = published.title_of(system)
                rows.append((dataset, named, record["cell"]["seed"], chosen["round"], chosen["output"]))
    rows.sort(key=lambda row: (DATASETS.index(str(row[0])), *map(str, row[1:])))
    return Table("", ("data set", "system", "seed", "round", "output"), tuple(rows))


def sources_table(facts: Facts, dataset: str) -> Table:
    """Appendix: precision, recall and F1 of each source of the paper, and of those that are recommended beside them."""
    printed = published.SOURCES[dataset]
    names = dict.fromkeys([*facts["paper_sources"], *printed, *facts["recommended_sources"]])
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        score, theirs = facts["source_scores"].get(name), printed.get(name)
        ours = tuple(score[key] for key in ("precision", "recall", "f1")) if score else (None, None, None)
        rows.append((name, *ours, *(theirs if theirs is not None else (None, None, None))))
    return Table("", ("source", "precision", "recall", "F1", "paper P", "paper R", "paper F1"), tuple(rows))


def cost_table(results: Results) -> Table:
    """Seconds of fitting and the most memory of each system on each data set."""
    columns = ("system", *(f"{dataset}, {unit}" for dataset in DATASETS for unit in ("s", "GB")))
    rows: list[tuple[Cell, ...]] = []
    for system in results.systems:
        found = [results.get(system, dataset) for dataset in DATASETS]
        costs = [(r.fit_seconds(), r.peak_gigabytes()) if r is not None else (None, None) for r in found]
        rows.append((published.title_of(system), *(cost for pair in costs for cost in pair)))
    return Table("", columns, tuple(rows), (0, *(0, 1) * len(DATASETS)))


def differences_table(results: Results, reasons: Mapping[str, Mapping[str, str]]) -> Table:
    """Every result that is over `NOTABLE` points from the published F1, with the reason that is recorded."""
    rows: list[tuple[Cell, ...]] = []
    for dataset in DATASETS:
        for system in results.systems:
            result, printed = results.get(system, dataset), published.published_f1(system, dataset)
            if result is None or printed is None or abs(result.mean() - printed) <= NOTABLE:
                continue
            why = reasons.get(dataset, {}).get(system, NO_REASON)
            f1 = result.mean()
            rows.append((dataset, published.title_of(system), result.split, f1, printed, f1 - printed, why))
    return Table("", ("data set", "system", "on", "F1", "paper", "difference", "reason"), tuple(rows))


def settings_table(results: Results) -> Table:
    """The recorded settings that are not the defaults of their part, and how many cells have each."""
    counts: dict[tuple[str, str, str], int] = {}
    for result in results.found.values():
        for record in result.records:
            for part, name, value in _changed(record["settings"], parse_system(result.system)):
                counts[part, name, value] = counts.get((part, name, value), 0) + 1
    rows = tuple((*key, count) for key, count in sorted(counts.items()))
    return Table("", ("part", "setting", "value", "cells"), rows)


def _changed(settings: dict[str, object], system: System) -> list[tuple[str, str, str]]:
    found = []
    for part, own in settings.items():
        if not isinstance(own, dict):
            continue
        kind = str(own.get("kind", ""))
        usual = defaults(part, kind)
        name = kind or part.replace("_", " ")
        name += f" ({system.name})" if system.special is not None and part == "tagger" else ""
        for key, value in own.items():
            if key not in ("kind", "seed", "encoder") and (key not in usual or value != usual[key]):
                found.append((name, key, str(value)))
    return found
