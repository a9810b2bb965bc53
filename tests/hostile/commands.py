"""Everything that commands take beside documents: sources, lists, models, plans and settings, each of them broken."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import tagweave
from hostile.cases import Command, Ends
from hostile.damage import MEMBER, corpus

DOCUMENTS = "documents.jsonl"
TOMLS: dict[str, tuple[str, str]] = {
    "empty": ("", "no sources"),
    "no_toml": ("[[source", "array"),
    "not_utf8": ("\udcff", ""),
    "nul": ("a = \0", ""),
    "one_bracket": ('[source]\nkind = "regex"\n', "two brackets"),
    "number": ("source = 7\n", ""),
    "text": ('source = ["regex"]\n', ""),
    "no_kind": ('[[source]]\nname = "a"\n', "kind"),
    "kind_number": ('[[source]]\nkind = 7\nname = "a"\n', "kind"),
    "kind_list": ('[[source]]\nkind = ["regex"]\nname = "a"\n', "kind"),
    "unknown_kind": ('[[source]]\nkind = "regexp"\nname = "a"\n', "regex"),
    "no_name": ('[[source]]\nkind = "regex"\npatterns = "a"\ntype = "A"\n', "name"),
    "name_number": ('[[source]]\nkind = "regex"\nname = 7\npatterns = "a"\ntype = "A"\n', ""),
    "name_list": ('[[source]]\nkind = "regex"\nname = ["a"]\npatterns = "a"\ntype = "A"\n', ""),
    "same_name": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = "a"\ntype = "A"\n' * 2, "both called"),
    "unknown_setting": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = "a"\ntype = "A"\nflag = "i"\n', "flags"),
    "unknown_flag": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = "a"\ntype = "A"\nflags = ["x9"]\n', ""),
    "pattern_broken": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = "("\ntype = "A"\n', "regular"),
    "pattern_number": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = 7\ntype = "A"\n', ""),
    "pattern_nested": (
        f'[[source]]\nkind = "regex"\nname = "a"\npatterns = "{"(" * 20_000}{")" * 20_000}"\ntype = "A"\n', ""),
    "pattern_slow": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = "(a|aa)+$"\ntype = "A"\ntimeout = 0.5\n',
                     "takes longer"),
    "timeout_nan": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = "q"\ntype = "A"\ntimeout = nan\n', ""),
    "timeout_negative": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = "q"\ntype = "A"\ntimeout = -1\n', ""),
    "group_missing": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = "q"\ntype = "A"\ngroup = 9\n', "group"),
    "nested": (f"a = {'[' * 100_000}", ""),
    "nested_tables": (f"[{'a.' * 20_000}a]\n", ""),
    "huge_number": (f"a = {'9' * 6000}\n", ""),
    "other_table": ('[sources]\nkind = "regex"\n', "source"),
    "missing_phrases": ('[[source]]\nkind = "dictionary"\nname = "a"\nphrases = "no.txt"\ntype = "A"\n', "no.txt"),
    "device_phrases": ('[[source]]\nkind = "dictionary"\nname = "a"\nphrases = "/dev/zero"\ntype = "A"\n', "/dev/zero"),
    "no_phrases": ('[[source]]\nkind = "dictionary"\nname = "a"\ntype = "A"\n', "phrases"),
    "phrases_number": ('[[source]]\nkind = "dictionary"\nname = "a"\nphrases = 7\ntype = "A"\n', ""),
    "case_unknown": ('[[source]]\nkind = "dictionary"\nname = "a"\nwords = ["x"]\ntype = "A"\ncase = "no"\n', "ignore"),
    "type_outside": ('[[source]]\nkind = "regex"\nname = "a"\npatterns = "Ada"\ntype = ""\n', ""),
}  # fmt: skip
"""Files of sources, and what must be said about each."""

PYTHONS: dict[str, tuple[str, str]] = {
    "empty": ("", "no sources"),
    "syntax": ("def f(:\n", "line 1"),
    "raises": ("x = 1\nraise RuntimeError('no')\n", "line 2.*RuntimeError"),
    "divides": ("\n\n1 / 0\n", "line 3"),
    "exits": ("import sys\nsys.exit(0)\n", "line 2"),
    "nul": ("a = 1\0\n", ""),
    "not_utf8": ("a = '\udcff'\n", ""),
    "number": ("SOURCES = 7\n", "list"),
    "functions": ("def f(d): return []\nSOURCES = [f]\n", "labeling_function"),
    "deep": ("x = " + "(" * 5000 + ")" * 5000 + "\n", ""),
    "recursion": ("def f(): return f()\nf()\n", "RecursionError"),
    "memory": ("x = [0] * 10**12\n", "MemoryError"),
    "no_module": ("import no_such_module_here\n", "line 1.*no_such_module_here"),
    **{
        f"votes_{name}": (
            "from tagweave.sources import labeling_function\n"
            f"@labeling_function('A')\ndef f(document):\n    {code}\n", "'f'.*'d0'")
        for name, code in {
            "number": "return 7",
            "text": "return 'abc'",
            "outside": "return [(0, 99)]",
            "negative": "return [(-1, 1)]",
            "reversed": "return [(2, 1)]",
            "fractions": "return [(0.5, 1.5)]",
            "nothing": "return [()]",
            "nulls": "return [None]",
            "other_type": "return [(0, 1, 7)]",
            "score": "return [(0, 1, 'A', 7)]",
            "nan_score": "return [(0, 1, 'A', float('nan'))]",
            "raises": "raise ValueError(document.id)",
            "exits": "raise SystemExit(3)",
            "recursion": "return f(document)",
        }.items()
    },
}  # fmt: skip
"""Python files of sources."""

LISTS: dict[str, tuple[bytes, str]] = {
    "a.txt": (b"\xff\n", "line 1"),
    "b.txt": (b"\0\n", "line 1"),
    "c.txt": (b"\n \n", ""),
    "d.tsv": (b"A\tB\tC\n", "line 1"),
    "e.tsv": (b"A\t\tx\n", "line 1"),
    "f.csv": (b"a,b\n1,2\n", "line 1"),
    "g.csv": (b"phrase,type\nOslo\n", "line 2"),
    "h.csv": (b'phrase\n"Oslo\n' + b"x" * 200_000, ""),
    "i.csv": (b"", ""),
    "j.json": (b"{", ""),
    "k.json": (b'{"A": "x"}', ""),
    "l.json": (b"[1]", ""),
    "m.json": (b"[" * 100_000, ""),
    "n.jsonl": (b'{"label": "A"}\n', "line 1"),
    "o.jsonl": (b'{"label": "A", "pattern": 7}\n', "line 1"),
    "p.jsonl": (b'{"label": "A", "pattern": ["x"]}\n', "line 1"),
    "q.jsonl": (b'{"label": "A", "pattern": [{"ORTH": ["x"]}]}\n', "line 1"),
    "r.jsonl": (b"7\n", "line 1"),
    "s.xls": (b"\xd0\xcf", ""),
    "t.txt.gz": (b"no gzip", ""),
    "u.txt.gz": (MEMBER * 64, ""),
    "v.json": (b'["\\ud800"]', ""),
}
"""Lists of phrases."""

ANSWERS: dict[str, tuple[str, str]] = {
    "no_json": ("{", "line 1"),
    "no_id": ('{"spans": []}', "line 1"),
    "no_spans": ('{"id": "d0"}', "line 1"),
    "spans_text": ('{"id": "d0", "spans": "a"}', "line 1"),
    "span_number": ('{"id": "d0", "spans": [7]}', "line 1"),
    "type_number": ('{"id": "d0", "spans": [[0, 3, 7]]}', "line 1"),
    "beyond": ('{"id": "d0", "spans": [[0, 999, "A"]]}', "d0"),
    "reversed": ('{"id": "d0", "spans": [[3, 0, "A"]]}', "d0"),
    "fraction": ('{"id": "d0", "spans": [[0.5, 3, "A"]]}', "d0"),
    "score": ('{"id": "d0", "spans": [[0, 3, "A", 7]]}', "d0"),
    "other_words": ('{"id": "d0", "spans": [{"start": 0, "end": 3, "label": "A", "text": "Bob"}]}', "d0"),
    "other_text": ('{"id": "d0", "text": "Rome", "spans": []}', "d0"),
    "texts_differ": ('{"id": "d0", "text": "a", "spans": []}\n{"id": "d0", "text": "b", "spans": []}', "line 2"),
    "nested": ("[" * 100_000, "line 1"),
}
"""Files of spans that something else has found."""

REPORTED = ("beyond", "reversed", "fraction", "score")
"""Those of which the report of the run says that spans were left out."""

PLANS: dict[str, tuple[str, str]] = {
    "empty": ("", "train"),
    "no_toml": ("= 7", "line 1"),
    "unknown_table": ("[date]\n", "data"),
    "value": ("data = 7\n", "data"),
    "unknown_key": (f"[data]\ntrian = '{DOCUMENTS}'\nout = 'x'\ntrain = 'a'\n", "train"),
    "train_number": ("[data]\ntrain = 7\nout = 'x'\n", "train"),
    "unknown_model": (f"[data]\ntrain = '{DOCUMENTS}'\nout = 'x'\n[label_model]\nkind = 'hmn'\n", "hmm"),
    "kind_number": (f"[data]\ntrain = '{DOCUMENTS}'\nout = 'x'\n[label_model]\nkind = 7\n", ""),
    "kind_list": (f"[data]\ntrain = '{DOCUMENTS}'\nout = 'x'\n[tagger]\nkind = ['bert']\n", ""),
    "epochs_text": (f"[data]\ntrain = '{DOCUMENTS}'\nout = 'x'\n[tagger]\nepochs = 'many'\n", "epochs"),
    "epochs_infinite": (f"[data]\ntrain = '{DOCUMENTS}'\nout = 'x'\n[tagger]\nepochs = inf\n", "epochs"),
    "parts": (f"[data]\ntrain = '{DOCUMENTS}'\nout = 'x'\n[alternate]\ntagger = 'bert'\n", "tagger"),
    "missing_train": ("[data]\ntrain = 'no.jsonl'\nout = 'x'\n", "no.jsonl"),
    "device_train": ("[data]\ntrain = '/dev/zero'\nout = 'x'\n", "/dev/zero"),
}  # fmt: skip
"""Plans of alternate trainings."""


def commands(folder: Path) -> Iterator[Command]:
    """All of them, to be run in the folder."""
    texts = [("a" * 40 + "b") * 5, "Ada saw Oslo"]
    records = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    (folder / DOCUMENTS).write_text("".join(f"{json.dumps(record)}\n" for record in records))
    yield from _sources(folder)
    yield from _lists(folder)
    for name, (content, says) in PLANS.items():
        (folder / f"plan_{name}.toml").write_text(content)
        yield Command(f"plan_{name}", ("alternate", f"plan_{name}.toml"), "refused", says)
    yield from _pipes(folder)
    yield from _models(folder)
    yield from _settings()


def _annotating(file: str, says: str, ends: Ends = "refused") -> Command:
    return Command(file, ("annotate", DOCUMENTS, "--sources", file, "--out", "voted.jsonl"), ends, says)


def _sources(folder: Path) -> Iterator[Command]:
    for ending, contents in (("toml", TOMLS), ("py", PYTHONS)):
        for name, (content, says) in contents.items():
            file = f"sources_{name}.{ending}"
            (folder / file).write_bytes(content.encode("utf-8", "surrogateescape"))
            yield _annotating(file, says)


def _lists(folder: Path) -> Iterator[Command]:
    for name, (raw, says) in LISTS.items():
        (folder / name).write_bytes(raw)
        file = f"list_{name.replace('.', '_')}.toml"
        (folder / file).write_text(f'[[source]]\nkind = "dictionary"\nname = "a"\ntype = "A"\nphrases = "{name}"\n')
        yield _annotating(file, f"{says}.*" if says else "")
    for name, (content, says) in ANSWERS.items():
        (folder / f"answers_{name}.jsonl").write_text(content)
        file = f"answers_{name}.toml"
        (folder / file).write_text(f'[[source]]\nkind = "span-file"\nname = "a"\nfile = "answers_{name}.jsonl"\n')
        yield _annotating(file, says, "repaired" if name in REPORTED else "refused")


def _pipes(folder: Path) -> Iterator[Command]:
    """Pipes and devices where something else than documents is expected."""
    for name in ("pipe.toml", "pipe.py", "pipe_answers.jsonl", "pipe.txt"):
        os.mkfifo(folder / name)
    yield _annotating("pipe.toml", "pipe.toml")
    yield _annotating("pipe.py", "pipe.py")
    yield Command("pipe_plan", ("alternate", "pipe.toml"), "refused", "pipe.toml")
    sources = {"answers": 'kind = "span-file"\nfile = "pipe_answers.jsonl"', "phrases": 'kind = "dictionary"'}
    sources["phrases"] += '\ntype = "A"\nphrases = "pipe.txt"'
    for name, settings in sources.items():
        (folder / f"pipe_{name}.toml").write_text(f'[[source]]\nname = "a"\n{settings}\n')
        yield _annotating(f"pipe_{name}.toml", "pipe")


def _models(folder: Path) -> Iterator[Command]:
    """Folders that hold no tagger."""
    model = folder / "label-model"
    tagweave.MajorityVote().fit(corpus().with_source("s", corpus().entities)).save(model)  # type: ignore[arg-type]
    (folder / "nothing").mkdir()
    folders = {"label-model": "", "nothing": "no folder", "no-such-folder": "no folder", DOCUMENTS: ""}
    for name, damage in _DAMAGES.items():
        shutil.copytree(model, folder / f"model_{name}")
        damage(folder / f"model_{name}")
        folders[f"model_{name}"] = ""
    for name, says in folders.items():
        yield Command(f"predict_{name}", ("predict", name, DOCUMENTS, "--out", "labelled.jsonl"), "refused", says)
        train = ("train", DOCUMENTS, "--out", "tagger", "--from", name)
        yield Command(f"train_{name}", train, "refused", "")


_DAMAGES = {
    "config_cut": lambda folder: (folder / "config.json").write_text("{"),
    "config_list": lambda folder: (folder / "config.json").write_text("[]"),
    "config_nested": lambda folder: (folder / "config.json").write_text("[" * 100_000),
    "config_gone": lambda folder: (folder / "config.json").unlink(),
    "manifest_gone": lambda folder: (folder / "manifest.json").unlink(),
    "manifest_number": lambda folder: (folder / "manifest.json").write_text("7"),
    "manifest_empty": lambda folder: (folder / "manifest.json").write_text("{}"),
    "weights_gone": lambda folder: (folder / "parameters.safetensors").unlink(),
    "config_pipe": lambda folder: _pipe(folder / "config.json"),
    "manifest_pipe": lambda folder: _pipe(folder / "manifest.json"),
    "manifest_zero": lambda folder: (
        (folder / "manifest.json").unlink(),
        (folder / "manifest.json").symlink_to("/dev/zero"),
    ),
}


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _settings() -> Iterator[Command]:
    """Options and settings that mean nothing."""
    aggregate = ("aggregate", DOCUMENTS, "--out", "labels.jsonl", "--model")
    lines: dict[str, tuple[str, ...]] = {
        "model": (*aggregate, "hmn"),
        "model_empty": (*aggregate, ""),
        "no_sources": (*aggregate, "hmm"),
        "unknown_source": (*aggregate, "hmm", "--sources", "a"),
        "setting": (*aggregate, "hmm", "--set", "iterations=x"),
        "no_setting": (*aggregate, "hmm", "--set", "="),
        "setting_table": (*aggregate, "hmm", "--set", "a.b.c=1"),
        "setting_nan": (*aggregate, "hmm", "--set", "tolerance=nan"),
        "setting_huge": (*aggregate, "hmm", "--set", f"seed={'9' * 6000}"),
        "coarse": (*aggregate, "hmm", "--coarse", "="),
        "seed_text": (*aggregate, "hmm", "--seed", "x"),
        "seed_huge": (*aggregate, "hmm", "--seed", "9" * 30),
        "state_space": (*aggregate, "hmm", "--state-space", "xyz"),
        "compare_none": ("compare", DOCUMENTS, "--models", ","),
        "compare_setting": ("compare", DOCUMENTS, "--models", "hmm", "--set", "hmm=1"),
        "analyze_model": ("analyze", DOCUMENTS, "--model", "x"),
        "analyze_gold": ("analyze", DOCUMENTS, "--gold", "no.jsonl"),
        "analyze_described": ("analyze", DOCUMENTS, "--model", "none", "--described-by", DOCUMENTS),
        "evaluate_scheme": ("evaluate", DOCUMENTS, DOCUMENTS, "--scheme", "x"),
        "convert_format": ("convert", DOCUMENTS, "out.jsonl", "--from", "x"),
        "convert_ending": ("convert", DOCUMENTS, "out.xyz"),
        "convert_nowhere": ("convert", DOCUMENTS, "no/such/folder/out.jsonl"),
        "convert_folder": ("convert", DOCUMENTS, "."),
        "convert_write_set": ("convert", DOCUMENTS, "out.conll", "--write-set", "a=1"),
        "annotate_format": ("annotate", DOCUMENTS, "--sources", "x.toml", "--out", "o.jsonl", "--from", "x"),
        "annotate_missing": ("annotate", "no.jsonl", "--sources", "sources_empty.toml", "--out", "o.jsonl"),
        "predict_output": ("predict", "nothing", DOCUMENTS, "--out", "o.jsonl", "--output", "x"),
        "train_no_entities": ("train", DOCUMENTS, "--out", "tagger"),
        "train_kind": ("train", DOCUMENTS, "--out", "tagger", "--tagger", "x"),
        "nul_path": ("convert", "a\0b.jsonl", "out.jsonl"),
        "long_path": ("convert", "x" * 5000 + ".jsonl", "out.jsonl"),
        "surrogate_path": ("convert", "\udcff.jsonl", "out.jsonl"),
    }
    for name, arguments in lines.items():
        yield Command(f"settings_{name}", arguments, "refused")
