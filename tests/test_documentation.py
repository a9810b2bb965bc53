"""Every example in the README and the documentation runs.

The fenced blocks of one page run from top to bottom in one temporary folder:

- a block with a `title="name"` is written to that file first;
- `python` blocks run in one namespace per page;
- in `console` blocks each line `$ tagweave ...` runs (with the lines that a final backslash joins to it) and must end
  with exit code 0, or, where the shown output begins with `error:`, must fail with that very message;
- a block after the comment `<!-- slow -->` runs only where TAGWEAVE_SLOW=1 is set;
- other languages, and blocks after the comment `<!-- not run -->`, are left alone.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}) *(?P<language>[\w-]*)(?P<options>[^`\n]*)$")
TITLE = re.compile(r'title="([^"]+)"')
MINUTES = 60


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    title: str | None
    text: str
    line: int
    mark: str


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order, each with the comment that stands right before it."""
    lines = iter(enumerate(text.splitlines(), start=1))
    mark = ""
    for number, line in lines:
        opening = FENCE.match(line)
        if opening is None:
            mark = line.strip() if line.strip() else mark
            continue
        width, body = len(opening["indent"]), []
        for _, inner in lines:
            if inner.strip() == opening["ticks"]:
                break
            body.append(inner[width:])
        title = TITLE.search(opening["options"])
        yield Block(opening["language"], title and title[1], "".join(f"{row}\n" for row in body), number, mark)
        mark = ""


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the output that the block shows for it."""
    command, shown, joined = None, [], False
    for line in text.splitlines():
        if joined or line.startswith("$ "):
            if not joined:
                if command is not None:
                    yield command, "\n".join(shown)
                command, shown = "", []
            command = f"{command or ''}{line.removeprefix('$ ').removesuffix(chr(92))} "
            joined = line.endswith("\\")
        else:
            shown.append(line)
    if command is not None:
        yield command, "\n".join(shown)


def words(text: str) -> str:
    """The text with every run of blanks and line ends made one blank."""
    return " ".join(text.split())


def run_command(command: str, shown: str, folder: Path, place: str) -> None:
    """Runs one line of a console block and compares how it ends with what the page shows."""
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder / '.bin'}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=15 * MINUTES,
    )
    if words(shown).startswith("error:"):
        assert result.returncode != 0, f"{place}: {command}: should fail"
        assert words(shown) in words(result.stderr), f"{place}: {command}: {result.stderr}"
    else:
        assert result.returncode == 0, f"{place}: {command}: {result.stdout}{result.stderr}"


def install_command(folder: Path) -> None:
    """Puts a `tagweave` program for this interpreter and these sources into the folder `.bin`."""
    program = folder / ".bin" / "tagweave"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT / 'src')!r})\n"
        "from tagweave.cli import main\nsys.exit(main())\n",
        encoding="utf-8",
    )
    program.chmod(0o755)


def run_page(text: str, folder: Path, name: str, *, slow: bool) -> int:
    """Runs the blocks of one page and returns how many python and console blocks ran."""
    install_command(folder)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran = 0
    for block in blocks(text):
        if block.mark == "<!-- not run -->" or (block.mark == "<!-- slow -->" and not slow):
            continue
        if block.title is not None:
            (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, name, "exec"), namespace)
            ran += 1
        elif block.language == "console":
            for command, shown in commands(block.text):
                if command.startswith("tagweave "):
                    run_command(command, shown, folder, f"{name}:{block.line}")
            ran += 1
    return ran


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    slow = os.environ.get("TAGWEAVE_SLOW") == "1"
    run_page(page.read_text(encoding="utf-8"), tmp_path, str(page.relative_to(ROOT)), slow=slow)


def test_readme_is_short_and_starts_with_an_example() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert any(block.language in {"python", "console"} and block.line < 30 for block in blocks(text))
    assert len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()) <= 600


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    missing = [page.name for page in PAGES[1:] if str(page.relative_to(ROOT / "docs")) not in navigation]
    assert not missing


def test_blocks_of_a_page_share_files_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (
        'Text.\n\n```text title="in/a.txt"\none\n```\n\n```python\nfrom pathlib import Path\n'
        'found = Path("in/a.txt").read_text()\n```\n\n'
        '- A list:\n\n    ```python\n    assert found == "one\\n"\n    ```\n\n'
        "<!-- slow -->\n```python\nraise RuntimeError\n```\n\n<!-- not run -->\n```python\nraise RuntimeError\n```\n"
    )
    assert run_page(page, tmp_path, "page.md", slow=False) == 2


def test_a_slow_block_runs_when_asked(tmp_path: Path) -> None:
    page = '<!-- slow -->\n\n```python\nraise RuntimeError("slow")\n```\n'
    with pytest.raises(RuntimeError, match="slow"):
        run_page(page, tmp_path, "page.md", slow=True)


def test_commands_are_split_from_their_output() -> None:
    text = "$ tagweave a \\\n    --b c\nfirst\nsecond\n$ tagweave d\n"
    assert [(words(command), shown) for command, shown in commands(text)] == [
        ("tagweave a --b c", "first\nsecond"),
        ("tagweave d", ""),
    ]


def test_a_failing_command_must_show_its_error(tmp_path: Path) -> None:
    run_command("echo 'error: no  such\nfile' >&2; exit 2", "error: no such file", tmp_path, "page.md:1")
    with pytest.raises(AssertionError, match="should fail"):
        run_command("true", "error: no such file", tmp_path, "page.md:1")
    with pytest.raises(AssertionError, match="exit"):
        run_command("exit 3", "", tmp_path, "page.md:1")
