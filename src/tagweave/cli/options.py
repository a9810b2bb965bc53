"""Options that several commands share, and how their texts become arguments of the library."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagweave.errors import DataError, UsageError, printable, unknown_name

if TYPE_CHECKING:
    from tagweave.corpus import Corpus
    from tagweave.stored import StoredCorpus
    from tagweave.stored.spread import SpreadCorpus

Settings = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="A setting of the component; may be repeated.")
]
Sources = Annotated[
    str | None, typer.Option("--sources", metavar="A,B,...", help="Only these sources, in this order. [default: all]")
]
Coarse = Annotated[
    list[str],
    typer.Option(
        "--coarse", metavar="TYPE=A,B", help="A type of sources that stands for one of several types; may be repeated."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of everything with chance in it.")]
Encoder = Annotated[
    str, typer.Option(metavar="NAME", help="A folder, a Hugging Face name, or `default` for the embedded MiniLM.")
]
Dev = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Documents with gold, to choose by. Without it no gold is used.")
]

Processes = Annotated[
    int, typer.Option(metavar="N", min=1, help="How many processes, or workers of a cluster, share the work.")
]
Engine = Annotated[
    str, typer.Option(metavar="local|ray", help="Who works on a folder of shards: this machine, or a Ray cluster.")
]
Address = Annotated[
    str, typer.Option(metavar="ADDRESS", help="The Ray cluster: `auto` finds one, `local` starts one for this command.")
]


def tell(text: str, err: bool = False) -> None:
    """Print what people read, or JSON, to standard output or stderr; what a terminal would obey is shown by number."""
    typer.echo(printable(text), err=err)


def check_no_stream(processes: int, *paths: Path | None) -> None:
    """Check that several processes need not share a stream.

    Raises:
        UsageError: one of the files is standard input.
    """
    if processes > 1 and any(str(path) == "-" for path in paths):
        raise UsageError(f"{processes} processes cannot all read standard input: give a file that each can open")


def read_corpus(path: Path, sources: str | None = None, coarse: Iterable[str] = ()) -> "Corpus":
    """Read a file and keep the chosen sources."""
    from tagweave.formats import read

    corpus = read(path, coarse=coarse_types(coarse))
    return corpus if sources is None else corpus.select_sources(split_names(sources, corpus.sources))


def store_corpus(path: Path, sources: str | None, coarse: Iterable[str], *, whole: bool) -> "StoredCorpus":
    """Read a file into a corpus on disk and keep the chosen sources; in one part if the `whole` is needed at once."""
    from tagweave.stored.labelling import store

    corpus = store(path, whole=whole, coarse=coarse_types(coarse))
    return corpus if sources is None else corpus.select_sources(split_names(sources, corpus.sources))


@contextmanager
def open_corpus(
    path: Path,
    sources: str | None,
    coarse: Iterable[str],
    *,
    whole: bool,
    **workers: Any,  # noqa: ANN401
) -> "Iterator[StoredCorpus | SpreadCorpus]":
    """A corpus on disk, of a file; or in workers, of a folder of shards. It is there as long as the block.

    Args:
        path: the file or folder.
        sources: names of those to keep, or None.
        coarse: types of sources that stand for several types.
        whole: whether a file is needed in one part.
        workers: settings of `tagweave.stored.spread.spread_crew`.
    """
    from tagweave.folders import is_folder_of_shards, shards_of
    from tagweave.stored.spread import SpreadCorpus, spread_crew

    if not is_folder_of_shards(path):
        yield store_corpus(path, sources, coarse, whole=whole)
        return
    with spread_crew(shards_of(path), **workers) as crew:
        corpus = SpreadCorpus(crew, coarse_types(coarse))
        yield corpus if sources is None else corpus.select_sources(split_names(sources, corpus.sources))


def read_dev(path: Path, sources: str | None = None, coarse: Iterable[str] = ()) -> "Corpus":
    """Read a file to choose by.

    Raises:
        DataError: no document has gold entities.
    """
    corpus = read_corpus(path, sources, coarse)
    if corpus.entities is None or not corpus.entities.ran.any():
        raise DataError(f"{path} has no gold entities, so nothing can be chosen by it. Leave out --dev, or annotate it")
    return corpus


def coarse_types(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Types of sources that stand for several types, from texts such as `ENT=PER,LOC`."""
    found: dict[str, tuple[str, ...]] = {}
    for name, members in map(_coarse, texts):
        if name in found:
            raise UsageError(f"--coarse {name} is given twice: write all that it stands for in one, {name}=A,B")
        found[name] = members
    return found


def _coarse(text: str) -> tuple[str, tuple[str, ...]]:
    name, equals, members = text.partition("=")
    if not equals or not name or not members:
        raise UsageError(f"--coarse {text}: write TYPE=A,B")
    return name, tuple(members.split(","))


def split_names(text: str, known: Iterable[str]) -> list[str]:
    """Names from a list with commas, where a name may itself hold commas.

    >>> split_names("a,b, c,d", ["a", "b, c", "d"])
    ['a', 'b, c', 'd']
    """
    names, parts, found = set(known), text.split(","), []
    while parts:
        for length in range(len(parts), 0, -1):
            name = ",".join(parts[:length])
            if name in names or name.strip() in names:
                found.append(name if name in names else name.strip())
                parts = parts[length:]
                break
        else:
            raise unknown_name("source", parts[0].strip(), names)
    return found


def reserve(context: typer.Context, *, file: Path | None = None, folder: Path | None = None) -> None:
    """Have the places of what a command will write, until it ends: what cannot be written is said before the work.

    Raises:
        UsageError: another run has a place, or nothing can be written there.
        StorageError: the folder holds something else.
    """
    from tagweave.storage import reserved
    from tagweave.stored.labelling import taken

    if file is not None:
        context.with_resource(taken(file))
    if folder is not None:
        context.with_resource(reserved(folder))


def whole_file(path: Path, engine: str, processes: int = 1) -> None:
    """Refuse, for a file that is worked on as a whole, what only folders of shards can have.

    Raises:
        UsageError: several workers, or an engine, are asked for.
    """
    asked = f"--engine {engine}" if engine != "local" else f"--processes {processes}" if processes > 1 else ""
    if asked:
        raise UsageError(f"{path} is one file: {asked} shares out the files of a folder. Cut it into shards")


def choose(settings: Mapping[str, Any], **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Settings with the options of the command line added; an option that was not given (None) adds nothing.

    Raises:
        UsageError: one thing is given in two ways.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name in settings:
            raise UsageError(f"{name} is given twice: as an option of its own, and by --set or in the plan. Leave one")
    return {**settings, **given}
