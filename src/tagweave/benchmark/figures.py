"""Figures of the benchmark as SVG; the same results make the same bytes."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagweave.alternate import OUTPUTS
from tagweave.benchmark import published
from tagweave.benchmark.datasets import DATASETS
from tagweave.benchmark.gathering import Results
from tagweave.benchmark.systems import parse_system
from tagweave.benchmark.tables import rounds_of
from tagweave.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROUNDS, COMPARED = "rounds", "published"
"""The two figures: F1 over the rounds of CHMM-ALT, and F1 of all systems beside the published."""


def require_matplotlib() -> None:
    """Check that matplotlib is there.

    Raises:
        MissingExtraError: it is not; the message says how to install it.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError(
            "figures need the package matplotlib, which is not installed: pip install 'tagweave[figures]'"
        )


def draw_figures(results: Results, folder: Path, prefix: str = "") -> dict[str, str]:
    """Draw both figures into a folder.

    Returns:
        Names of the files, by figure.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    names = {}
    style: dict[Any, Any] = {
        "svg.hashsalt": "tagweave",
        "svg.fonttype": "none",
        "font.size": 8,
        "axes.grid": True,
        "grid.alpha": 0.3,
    }
    for name, draw, height in ((ROUNDS, _rounds, 2.6), (COMPARED, _compared, 1 + 0.2 * len(results.systems))):
        with mpl.rc_context(style):
            figure = Figure(figsize=(10, height), layout="constrained")
            FigureCanvasSVG(figure)
            axes = figure.subplots(1, len(DATASETS), sharey=name == COMPARED)
            for dataset, place in zip(DATASETS, axes, strict=True):
                place.set_title(dataset)
                draw(results, dataset, place)
            names[name] = f"{prefix}{name}.svg"
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(folder / names[name], format="svg", metadata={"Date": None, "Creator": None})
    return names


def _rounds(results: Results, dataset: str, axes: "Axes") -> None:
    """Figure 4: both outputs of CHMM-ALT after each round, and the strongest system without it."""
    result = results.get("chmm-alt", dataset)
    if result is not None:
        for output, marker in zip(OUTPUTS, "os", strict=True):
            scores = rounds_of(result, output)
            axes.plot(range(len(scores)), scores, marker=marker, markersize=3, label=output.replace("-", " "))
            names = ["I", *(f"II-{number}" for number in range(1, len(scores)))]
        axes.set_xticks(range(len(names)), names)
        axes.set_ylabel(f"F1 on {result.split}")
    best = strongest_baseline(results, dataset)
    if result is not None and best is not None:
        axes.axhline(best[1], linestyle="--", color="gray", label=published.title_of(best[0]))
    if result is None:
        axes.set_axis_off()
    else:
        axes.legend()


def strongest_baseline(results: Results, dataset: str) -> tuple[str, float] | None:
    """The best system that neither reads gold nor is a CHMM that is trained with a tagger, and its F1."""
    found = [
        (system, result.mean())
        for (system, d), result in results.found.items()
        if d == dataset
        and not parse_system(system).uses_gold
        and not parse_system(system).alternate
        and system not in ("chmm", "chmm+bert")
    ]
    return max(found, key=lambda item: item[1], default=None)


def _compared(results: Results, dataset: str, axes: "Axes") -> None:
    """F1 of every system, with the published one where there is one."""
    systems = results.systems[::-1]
    places: list[Any] = list(range(len(systems)))
    axes.set_yticks(places, [published.title_of(system) for system in systems])
    for place, system in zip(places, systems, strict=True):
        result, printed = results.get(system, dataset), published.published_f1(system, dataset)
        if printed is not None:
            axes.plot(printed, place, "x", color="gray", markersize=4, label="paper")
        if result is not None:
            axes.errorbar(result.mean(), place, xerr=result.deviation() or 0, fmt="o", color="C0", markersize=4)
    axes.set_xlabel("F1 (x: paper)")
