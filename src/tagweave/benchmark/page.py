"""The page of results: Markdown, with everything that is needed to repeat and to judge them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tagweave.benchmark import tables
from tagweave.benchmark.cells import Cell
from tagweave.benchmark.datasets import DATASETS
from tagweave.benchmark.facts import Facts, read_facts
from tagweave.benchmark.figures import COMPARED, ROUNDS, draw_figures
from tagweave.benchmark.gathering import Results, gather, read_reasons, usual_systems
from tagweave.errors import DataError, MissingExtraError
from tagweave.progress import say
from tagweave.report import Table
from tagweave.storage import write_json

NOTES = "notes.md"
"""Text in the folder of results that ends the page."""


def render(out: Path, page: Path | None = None) -> Path:
    """Write `results.json`, and the page with its figures beside it.

    Args:
        out: the folder of results.
        page: where the page goes; `results.md` in that folder by default.

    Returns:
        The page.

    Raises:
        DataError: the folder holds no result.
    """
    ways, facts = gather(out), read_facts(out)
    if not ways:
        raise DataError(f"{out} holds no result of a cell, so there is nothing to show")
    page = page or out / "results.md"
    reasons = read_reasons(out)
    write_json(out / "results.json", _as_json(ways, facts, reasons))
    try:
        figures = draw_figures(ways[0], page.parent, f"{page.stem}-")
    except MissingExtraError as error:
        say(f"no figures: {error}")
        figures = {}
    parts = [*_opening(ways, out), *_data(facts), *_main(ways[0], figures, reasons), *_appendix(ways, facts)]
    notes = out / NOTES
    if notes.is_file():
        parts.append(notes.read_text(encoding="utf-8").strip())
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8", newline="\n")
    return page


def command(results: Results, out: Path, whole: bool = True) -> str:
    """The command that makes these results; where they are not meant to be `whole`, only what is there."""
    way = results.way
    options = [f"--sources {way.sources}", *["--gold-free"] * way.gold_free, f"--seeds {results.seeds}"]
    options += [f"--encoder {way.encoder}"] if way.encoder not in ("", "default") else []
    systems = results.systems if whole else results.own_systems
    found = [name for name in DATASETS if any(results.get(system, name) for system in systems)]
    if not whole and len(found) < len(DATASETS):
        options.append(f"--datasets {','.join(found)}")
    if not set(systems) <= set(usual_systems()) or (not whole and results.missing()):
        options.append(f"--systems {','.join(systems)}")
    return f"$ tagweave benchmark paper {' '.join(options)} --out {out.as_posix()}"


def _opening(ways: list[Results], out: Path) -> Iterable[str]:
    main = ways[0]
    yield "# Results"
    yield (
        "The tables of Li et al. (ACL 2021) made anew on the public votes of the same sources. Scores are strict "
        "entity scores in percent, the mean over seeds; numbers in brackets are those that the paper printed. No gold "
        "of train is used but by supervised systems. Where test has no public gold, scores are on dev, and the tables "
        "say so; the paper's are always of test."
    )
    commands = "\n".join(command(results, out, whole=results is main) for results in ways)
    yield f"## How to repeat them\n\n<!-- not run -->\n```console\n{commands}\n```"
    yield "reads the folder that `TAGWEAVE_DATA` names, and goes on where it was broken off."
    yield _missing(main)
    yield _outdated(main, out)
    yield _machines(ways)
    yield _choices(main)
    yield _notes(main)
    yield from _section(
        "Settings", "Everything that is not a default, the same for all data sets.", tables.settings_table(main)
    )


def _missing(results: Results) -> str:
    missing = results.missing()
    if not missing:
        return ""
    lines = [f"{len(missing)} of {len(DATASETS) * len(usual_systems())} cells are missing, and shown as `-`:", ""]
    for dataset in DATASETS:
        names = [system for system, name in missing if name == dataset]
        lines += [f"- {dataset}: {', '.join(names)}"] if names else []
    return "\n".join(lines)


def _outdated(results: Results, out: Path) -> str:
    """Which results were made with other settings; of an encoder that may not be at hand nobody knows."""
    if results.way.encoder not in ("", "default"):
        return ""
    cells = [Cell.from_json(record["cell"]) for record in _records([results])]
    old = [f"{cell.dataset}/{cell.name}" for cell in cells if cell.state(out) == "stale"]
    if not old:
        return ""
    return f"Made with other settings than those of today, and to be made anew with `--rerun`: {', '.join(sorted(old))}"


def _machines(ways: list[Results]) -> str:
    counts: dict[str, int] = {}
    for record in _records(ways):
        machine = record["machine"]
        text = f"{machine['processor']}, {machine['usable_cores']} of {machine['cores']} cores"
        if "device" in machine:
            text += f", {machine['device']}, {'bfloat16' if machine['bfloat16'] else 'float32'}"
        packages = [f"{name} {record['versions'][name]}" for name in ("python", "torch") if name in record["versions"]]
        text += f" ({', '.join(packages)})"
        counts[text] = counts.get(text, 0) + 1
    return "Made on: " + "; ".join(f"{text}: {count} cells" for text, count in sorted(counts.items())) + "."


def _choices(results: Results) -> str:
    seeds = {result.seeds for result in results.found.values()}
    shown = f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else str(max(seeds))
    chosen = (
        "nothing is chosen on dev"
        if results.way.gold_free
        else "epochs of taggers, what label models apply (what silence means, how much votes weigh, how far a "
        "tagger is trusted), and round and output of alternate training are chosen on dev"
    )
    return f"Main results: {results.way.title()}; {chosen}. Seeds: {shown}; systems without chance have one."


def _notes(results: Results) -> str:
    found: dict[str, list[str]] = {}
    for (system, dataset), result in results.found.items():
        for note in result.records[0]["notes"]:
            found.setdefault(f"{dataset}: {note}", []).append(system)
    everywhere = {d: sum(1 for _, name in results.found if name == d) for d in DATASETS}
    lines = []
    for note, systems in sorted(found.items(), key=lambda item: DATASETS.index(item[0].partition(":")[0])):
        all_of_it = len(systems) == everywhere[note.partition(":")[0]]
        lines.append(f"- {note}" + ("" if all_of_it else f" ({', '.join(sorted(systems))})"))
    return "\n".join(lines)


def _records(ways: list[Results]) -> Iterable[dict[str, Any]]:
    seen = {}
    for results in ways:
        for result in results.found.values():
            for record in result.records:
                seen[str(record["cell"])] = record
    return seen.values()


def _section(title: str, text: str, table: Table) -> Iterable[str]:
    if table.rows:
        yield from (f"## {title}", text, table.markdown())


def _data(facts: dict[str, Facts]) -> Iterable[str]:
    if facts:
        yield from _section("Data", "As table 1 of the paper.", tables.statistics_table(facts))


def _main(results: Results, figures: dict[str, str], reasons: Any) -> Iterable[str]:  # noqa: ANN401
    yield from _section(
        "Main results", f"F1, as table 2 of the paper: {results.way.title()}.", tables.overview_table(results)
    )
    if COMPARED in figures:
        yield f"![F1 of every system beside the paper's]({figures[COMPARED]})"
    for dataset in DATASETS:
        if any(name == dataset for _, name in results.found):
            yield f"### {dataset}"
            yield tables.details_table(results, dataset).markdown()
    yield from _section(
        "With and without alternate training",
        "As table 3 of the paper, over the seeds that both have.",
        tables.alternate_table(results),
    )
    yield from _section("F1 over the rounds", "As figure 4 of the paper.", tables.rounds_table(results))
    if ROUNDS in figures:
        yield f"![F1 of CHMM-ALT after each round]({figures[ROUNDS]})"
    yield from _section("What was chosen", "", tables.chosen_table(results))
    yield from _section(
        "Differences to the paper",
        f"Every F1 that lies over {tables.NOTABLE:g} points from the published one.",
        tables.differences_table(results, reasons),
    )


def _appendix(ways: list[Results], facts: dict[str, Facts]) -> Iterable[str]:
    for results in ways[1:]:
        yield from _section(f"In another way: {results.way.title()}", "", tables.other_way_table(results, ways[0]))
    if facts:
        yield "## Sources"
        yield (
            "Each source against gold, as the paper's appendix; those without the paper's scores are recommended. The "
            "printed F1 of CoreDictionaryUncased is a misprint of 54.8."
        )
    for dataset, found in facts.items():
        yield f"### Sources of {dataset}, {found['scored_on']}"
        yield tables.sources_table(found, dataset).markdown()
    yield from _section(
        "Time and memory",
        "Seconds of fitting (embeddings are made before), and the most memory of the process.",
        tables.cost_table(ways[0]),
    )


def _as_json(ways: list[Results], facts: dict[str, Facts], reasons: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "statistics": tables.statistics_table(facts).records() if facts else [],
        "sources": {dataset: tables.sources_table(found, dataset).records() for dataset, found in facts.items()},
        "ways": [
            {
                **results.way._asdict(),
                "missing": [list(pair) for pair in results.missing()],
                "main": {d: tables.details_table(results, d).records() for d in DATASETS},
                "alternate": tables.alternate_table(results).records(),
                "rounds": tables.rounds_table(results).records(),
                "chosen": tables.chosen_table(results).records(),
                "differences": tables.differences_table(results, reasons).records(),
                "cost": tables.cost_table(results).records(),
                "settings": tables.settings_table(results).records(),
            }
            for results in ways
        ],
    }
