"""The command line: one file a command, each a thin signature over functions of the library.

What a user can cause ends in one paragraph on stderr and an exit code (1, or 2 for wrong usage), never in a traceback.
"""

import os
import sys
import textwrap
import warnings
from typing import Annotated

import typer

from tagweave import __version__, progress
from tagweave.cli.aggregate import aggregate
from tagweave.cli.alternate import alternate
from tagweave.cli.analyze import analyze
from tagweave.cli.annotate import annotate
from tagweave.cli.benchmark import app as benchmark
from tagweave.cli.command import Command
from tagweave.cli.compare import compare
from tagweave.cli.convert import convert
from tagweave.cli.demo import demo
from tagweave.cli.embed import embed
from tagweave.cli.evaluate import evaluate
from tagweave.cli.export import export
from tagweave.cli.predict import predict
from tagweave.cli.train import train
from tagweave.errors import TagweaveError, TagweaveWarning, UsageError, shortened
from tagweave.stopping import Stopped, stoppable
from tagweave.team import launched, team

app = typer.Typer(
    name="tagweave",
    help="Turn many noisy taggers into one accurate named-entity recogniser, without gold labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    demo, annotate, analyze, compare, embed, aggregate, train, alternate, predict, export, evaluate, convert,
):  # fmt: skip
    app.command(cls=Command)(_command)
app.add_typer(benchmark, name="benchmark")

_TOGETHER = ("train", "alternate")
"""Commands that several processes work on together."""

_running = [""]
"""The command under way comes last."""

_WITH_RESUME = "What was finished is kept: the same command with --resume goes on"
_GOES_ON = {
    "annotate": _WITH_RESUME,
    "train": _WITH_RESUME,
    "alternate": _WITH_RESUME,
    "benchmark": "What was finished is kept: the same command goes on",
}
"""What to do after commands that can be gone on with."""
_AGAIN = "What was there before is unchanged; shards that are finished are kept. Give the same command again"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tagweave {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    progress.show(not quiet)
    _running.append(context.invoked_subcommand or "")
    if launched() and context.invoked_subcommand not in _TOGETHER:
        raise UsageError(
            f"{context.invoked_subcommand} does not work in several processes, only {' and '.join(_TOGETHER)} do: "
            "start it without torchrun"
        )


_FEW_SHAPES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}
"""On a CPU torch keeps what it has made ready for the last 1,024 shapes of batches. Hardly one comes again in a large
file, which by and by takes some hundred MB."""


def main() -> None:
    """Run the command line; the entry point of the `tagweave` script."""
    for name, value in _FEW_SHAPES.items():
        os.environ.setdefault(name, value)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    warnings.simplefilter("always", TagweaveWarning)
    warnings.showwarning = _show_warning
    try:
        with stoppable():
            app(prog_name="tagweave")
    except TagweaveError as error:
        _paragraph("error", str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        _paragraph("error", str(error) if error.filename is None else f"{error.filename}: {error.strerror}")
        sys.exit(1)
    except MemoryError:
        _paragraph("error", "the memory of this machine is too small for this: give less at a time")
        sys.exit(1)
    except Stopped as stop:
        _paragraph("stopped", f"{stop.how}. {_GOES_ON.get(_running[-1], _AGAIN)}")
        sys.exit(stop.code)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, TagweaveWarning):
        _paragraph("warning", str(message))


def _paragraph(kind: str, message: str) -> None:
    indent = " " * (len(kind) + 2)
    if not team().says(message):
        return
    wrapped = textwrap.fill(
        shortened(message), 110, initial_indent=f"{kind}: ", subsequent_indent=indent, break_long_words=False
    )
    sys.stderr.write(f"{wrapped}\n")
