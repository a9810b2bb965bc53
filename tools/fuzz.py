"""Throws changed files at everything that reads files; only errors of tagweave may come out.

    python tools/fuzz.py TARGET... [--seconds 600]
    python tools/fuzz.py TARGET --repeat FILE

Coverage-guided: what reaches new code is changed further (atheris, `pip install -r tools/fuzz.txt`). Each target runs
in a process of its own, begins with small valid files, and ends at the first fault, whose input is kept in
`fuzz/TARGET/`.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

MEMORY = Path("/dev/shm")
INSTRUMENTED = ["tagweave.formats", "tagweave.config", "tagweave.storage", "tagweave.encoder.model_folders"]
INSTRUMENTED += ["tagweave.label_models.restoring", "tagweave.sources.loading", "tagweave.sources.phrase_files"]
INSTRUMENTED += ["tagweave.sources.answers", "tagweave.sources.patterns"]
"""What tells how far an input gets: code that reads."""
COMPILED = ["tagweave.corpus", "tagweave.chain.kernels", "tagweave.chain.posterior", "tagweave.vote_kernels"]
COMPILED += ["tagweave.label_models"]
"""What numba compiles, which it cannot where something else looks into it."""
LONGEST = 4096
"""Bytes of an input."""


def reader(name: str) -> Callable[[bytes, Path], None]:
    """Reads a file in a format."""

    def run(data: bytes, folder: Path) -> None:
        from tagweave.formats import read

        path = folder / "input"
        path.write_bytes(data)
        read(path, format=name)

    return run


def dataset(data: bytes, folder: Path) -> None:
    """Reads a folder of a data set; the input stands for each of its files."""
    from tagweave.formats import read

    names = ("state.json", "dataset_info.json", "data-00000-of-00001.arrow")
    which, data = (data[0] % len(names), data[1:]) if data else (0, b"")
    place = _copy("datasets", folder)
    (place / names[which]).write_bytes(data)
    read(place, format="datasets")


def docbin(data: bytes, folder: Path) -> None:
    """Reads a DocBin; the input is what is packed in it, so that changes get past the packing."""
    reader("docbin")(zlib.compress(data, 1), folder)


def brat(data: bytes, folder: Path) -> None:
    """Reads a document of brat; the first line is its text."""
    from tagweave.formats import read

    text, _, annotations = data.partition(b"\n")
    (folder / "d.txt").write_bytes(text)
    (folder / "d.ann").write_bytes(annotations)
    read(folder / "d.ann", format="brat")


def label_model(data: bytes, folder: Path) -> None:
    """Loads a label model whose manifest fits; the input stands for one of its files."""
    from tagweave.label_models import LabelModel

    place = _changed("label-model", ("config.json", "parameters.safetensors", "manifest.json"), data, folder)
    LabelModel.load(place).predict(_corpus())


def tagger(data: bytes, folder: Path) -> None:
    """Loads a tagger whose manifest fits; the input stands for one of its files."""
    from tagweave.tagger import Tagger

    names = ("tagweave.json", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    Tagger.load(_changed("tagger", names, data, folder))


def config(data: bytes, folder: Path) -> None:
    """Reads settings from TOML, and makes a label model of them."""
    from tagweave.config import read_toml
    from tagweave.label_models import create_label_model

    path = folder / "plan.toml"
    path.write_bytes(data)
    for name, settings in read_toml(path).items():
        create_label_model(name, settings if isinstance(settings, dict) else {"seed": settings})


def sources(data: bytes, folder: Path) -> None:
    """Loads sources from TOML; nothing is run."""
    from tagweave.sources import load_sources

    path = folder / "sources.toml"
    path.write_bytes(data)
    load_sources(path)


def phrases(data: bytes, folder: Path) -> None:
    """Reads a list of phrases in each of its forms."""
    from tagweave.errors import TagweaveError
    from tagweave.sources.phrase_files import read_phrases

    for ending in ("txt", "tsv", "csv", "json", "jsonl"):
        path = folder / f"phrases.{ending}"
        path.write_bytes(data)
        with contextlib.suppress(TagweaveError):
            list(read_phrases(path))


def answers(data: bytes, folder: Path) -> None:
    """Reads what a language model answers."""
    from tagweave.sources.answers import read_list, read_lists

    text = data.decode("utf-8", "replace")
    for read in (read_list, lambda text: read_lists(text, 2)):
        with contextlib.suppress(ValueError):
            read(text)


FILES = (
    "jsonl text conll conllu chmm-alt pubtator bioc semeval docbin parquet label-studio doccano prodigy argilla".split()
)
TARGETS: dict[str, Callable[[bytes, Path], None]] = {
    **{name: reader(name) for name in FILES},
    "datasets": dataset,
    "docbin": docbin,
    "brat": brat,
    "label-model": label_model,
    "tagger": tagger,
    "config": config,
    "sources": sources,
    "phrases": phrases,
    "answers": answers,
}

_SEEDS = {
    "brat": [b"Ada saw Oslo\nT1\tPER 0 3\tAda\nR1\tin Arg1:T1 Arg2:T1\n#1\tNote T1\tx\n"],
    "config": [b'[hmm]\niterations = 5\nsilence = "never"\n', b"[linked-hmm]\naccuracy = 0.8\n"],
    "phrases": [b"Oslo\nNew York\tLOC\n", b"phrase,type\nOslo,LOC\n", b'[{"label": "LOC", "pattern": "Oslo"}]'],
    "answers": [b'["Oslo", "Rome"]', b'<think>["a"]</think>{"1": ["Oslo"], "2": []}'],
    "sources": [
        b'[[source]]\nkind = "regex"\nname = "r"\npatterns = "[0-9]+"\ntype = "N"\n',
        b'[[source]]\nkind = "dictionary"\nname = "d"\nphrases = { LOC = ["Oslo"] }\n',
        b'[[source]]\nkind = "language-model"\nname = "m"\nurl = "http://a"\nmodel = "m"\ndefinitions = {A = "a"}\n',
    ],
}


def _corpus() -> "object":
    from attacks.folders import corpus

    return corpus()


def _changed(what: str, names: tuple[str, ...], data: bytes, folder: Path) -> Path:
    from attacks.folders import signed

    which, data = (data[0] % len(names), data[1:]) if data else (0, b"")
    place = _copy(what, folder)
    (place / names[which]).write_bytes(data)
    if names[which] != "manifest.json":
        signed(place)
    return place


def _good(what: str, folder: Path) -> Path:
    """A valid folder."""
    place = folder / what
    if what == "datasets":
        from hostile.damage import write

        write(place, "datasets")
    elif what == "label-model":
        from tagweave.label_models import HMM

        HMM(iterations=2).fit(_corpus()).save(place)  # type: ignore[arg-type]
    else:
        import tiny_encoder
        from tagweave.tagger import Tagger

        encoder = tiny_encoder.build(folder / "encoder", ["Ada", "saw", "Oslo"])
        Tagger(encoder=encoder, output="crf", epochs=1).fit(_corpus()).save(place)  # type: ignore[arg-type]
    return place


_GOOD: dict[str, Path] = {}


def _copy(what: str, folder: Path) -> Path:
    place = folder / what
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(_GOOD[what], place))


def seeds(target: str, folder: Path, good: Path) -> None:
    """Small valid inputs in a folder."""
    if target in ("datasets", "label-model", "tagger"):
        _GOOD[target] = _good(target, good)
        files = {
            "datasets": ("state.json", "dataset_info.json", "data-00000-of-00001.arrow"),
            "label-model": ("config.json", "parameters.safetensors", "manifest.json"),
            "tagger": ("tagweave.json", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
        }[target]
        contents = [bytes([number]) + (_GOOD[target] / name).read_bytes() for number, name in enumerate(files)]
    elif target in _SEEDS:
        contents = _SEEDS[target]
    else:
        from hostile.damage import write

        write(good / target, target)
        content = (good / target).read_bytes()
        contents = [zlib.decompress(content) if target == "docbin" else content]
    for number, content in enumerate(contents):
        (folder / f"seed{number}").write_bytes(content)


def fuzz(target: str, seconds: int, repeat: Path | None) -> None:
    """Run one target in this process, which ends with it."""
    import atheris

    for name in COMPILED:  # before atheris gets to see it
        import_module(name)
    with atheris.instrument_imports(include=INSTRUMENTED, enable_loader_override=False):
        for name in INSTRUMENTED:
            import_module(name)
    from tagweave.errors import TagweaveError

    warnings.simplefilter("ignore")
    base = Path(tempfile.mkdtemp())
    for name in ("seeds", "good", "work"):
        (base / name).mkdir()
    seeds(target, base / "seeds", base / "good")
    kept = ROOT / "fuzz" / target
    kept.mkdir(parents=True, exist_ok=True)
    run = TARGETS[target]

    def once(data: bytes) -> None:
        try:
            run(data, base / "work")
        except TagweaveError:
            pass

    if repeat is not None:
        once(repeat.read_bytes())
        print(f"{target}: {repeat} is read, or refused in order")
        return
    options = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-timeout=20", "-rss_limit_mb=4096", "-verbosity=0"]
    options += [f"-artifact_prefix={kept}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, str(kept), str(base / "seeds")], once)
    atheris.Fuzz()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="by default all, one after the other")
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--repeat", type=Path, help="run one target on one file")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    targets = arguments.targets or list(TARGETS)
    if arguments.here or arguments.repeat is not None:
        fuzz(targets[0], arguments.seconds, arguments.repeat)
        return
    failed = {}
    for target in targets:
        print(f"== {target}", flush=True)
        command = [sys.executable, __file__, target, "--here", "--seconds", str(arguments.seconds)]
        with tempfile.TemporaryDirectory(prefix="tagweave-fuzz-", dir=MEMORY if MEMORY.is_dir() else None) as place:
            environment = {**os.environ, "TMPDIR": place, "TAGWEAVE_CACHE": place}
            code = subprocess.run(command, env=environment, cwd=ROOT).returncode
        if code:
            failed[target] = code
    print(json.dumps({"failed": failed}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
