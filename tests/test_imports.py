"""The public names, the order of the layers, and what is not loaded without need."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tagweave

PACKAGE = Path(tagweave.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# Imports go only down this list: a module may use what stands before it. The same order is in docs/design.md.
LAYERS = [
    "errors",
    "parts",
    "stopping",
    "labels",
    "annotations",
    "soft_labels",
    "corpus",
    "chain",
    "vote_kernels",
    "observations",
    "progress",
    "processes",
    "writing",
    "report",
    "storage",
    "config",
    "pipelines",
    "shards",
    "formats",
    "stored",
    "evaluation",
    "encoder",
    "team",
    "training",
    "label_models",
    "comparison",
    "sources",
    "annotating",
    "analysis",
    "tagger",
    "alternate",
    "folders",
    "benchmark",
    "demo",
    "cli",
]

ABOVE_ALL = {"__init__", "__main__"}
HEAVY = ("torch", "transformers", "tokenizers", "sentence_transformers", "spacy", "sklearn", "ray", "triton")

RECORDS = [
    {
        "id": "a",
        "tokens": ["Ada", "Lovelace", "wrote"],
        "entities": [[0, 2, "PER"]],
        "sources": {"names": [[0, 2, "PER"]]},
    },
    {"id": "b", "tokens": ["Oslo", "is", "cold"], "entities": [[0, 1, "LOC"]], "sources": {"names": []}},
]


def loaded_by(code: str, folder: Path) -> list[str]:
    """The heavy packages that a fresh interpreter holds after running `code` in `folder`."""
    search_path = os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
    report = f"import sys\nprint('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search_path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()[-1].split()[1:]


def command(*arguments: str) -> str:
    """Code that runs one command of the command line and fails when the command does."""
    return "\n".join(
        [
            "import sys",
            "from tagweave.cli import main",
            f"sys.argv = ['tagweave', *{arguments!r}]",
            "try:",
            "    code = main()",
            "except SystemExit as exit:",
            "    code = exit.code",
            "if code:",
            "    sys.exit(code)",
        ]
    )


def imported_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports, also inside functions."""
    package = ("tagweave", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            parts = base + ([node.module] if node.module else [])
            for alias in node.names:
                yield node.lineno, ".".join([*parts, alias.name])


def layer_of(path: Path) -> str:
    """The layer that a file of the package belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def short_name(path: Path) -> str:
    """A file's path inside the package."""
    return str(path.relative_to(PACKAGE))


def test_all_is_sorted_and_every_name_is_there() -> None:
    assert tagweave.__all__ == sorted(tagweave.__all__, key=str)
    assert len(set(tagweave.__all__)) == len(tagweave.__all__)
    missing = [name for name in tagweave.__all__ if not hasattr(tagweave, name)]
    assert not missing


def test_dir_lists_all_public_names() -> None:
    assert set(tagweave.__all__) <= set(dir(tagweave))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = tagweave.no_such_name  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["evaluate", "gold.jsonl", "gold.jsonl"],
        ["convert", "gold.jsonl", "copy.jsonl.gz"],
        ["convert", "gold.jsonl", "copy.conll"],
    ],
    ids=["help", "evaluate", "convert-json-lines", "convert-conll"],
)
def test_light_commands_load_no_heavy_package(arguments: list[str], tmp_path: Path) -> None:
    lines = [json.dumps(record) for record in RECORDS]
    (tmp_path / "gold.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert loaded_by(command(*arguments), tmp_path) == []


def test_importing_the_package_loads_no_heavy_package(tmp_path: Path) -> None:
    assert loaded_by("import tagweave", tmp_path) == []


def test_the_design_page_shows_the_same_order() -> None:
    text = (PACKAGE.parent.parent / "docs" / "design.md").read_text(encoding="utf-8")
    shown = re.search(r"Imports go only downward: `([^`]+)`", text)
    assert shown is not None
    assert [name.strip() for name in shown[1].split("<")] == LAYERS


def test_every_module_has_a_layer() -> None:
    unknown = {layer_of(path) for path in MODULES} - set(LAYERS) - ABOVE_ALL
    assert not unknown, f"add {sorted(unknown)} to LAYERS here and to the order in docs/design.md"


def test_no_layer_without_a_module() -> None:
    assert not set(LAYERS) - {layer_of(path) for path in MODULES}


@pytest.mark.parametrize("path", [path for path in MODULES if layer_of(path) not in ABOVE_ALL], ids=short_name)
def test_imports_go_down_the_layers(path: Path) -> None:
    own = layer_of(path)
    upward = []
    for line, name in imported_names(path):
        parts = name.split(".")
        if parts[0] != "tagweave":
            continue
        if len(parts) == 1 or parts[1] not in LAYERS:
            if name != "tagweave.__version__":
                upward.append(f"line {line}: {name} (import from the module, not from the package)")
        elif parts[1] != own and LAYERS.index(parts[1]) > LAYERS.index(own):
            upward.append(f"line {line}: {name}")
    assert not upward
