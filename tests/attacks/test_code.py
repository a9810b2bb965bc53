"""Nothing in the package runs code from a file, a message or a model folder: what it calls is looked at."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tagweave

PACKAGE = Path(tagweave.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "jsonpickle"}
UNSAFE_MODULES |= {"code", "codeop", "runpy", "pty", "imp", "xmlrpc", "telnetlib", "ftplib", "tarfile"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "torch.hub.load", "torch.jit.load"}
UNSAFE_CALLS |= {"os.system", "os.popen", "tempfile.mktemp", "shutil.unpack_archive", "pd.read_pickle"}
SAFE_ONLY_WITH = {"np.load": "allow_pickle=False", "numpy.load": "allow_pickle=False"}
FORBIDDEN_VALUES = {"allow_pickle": "False", "trust_remote_code": "False", "shell": "False", "weights_only": "True"}
"""Arguments that must not be anything else."""


def findings(tree: ast.AST) -> Iterator[str]:
    """What must not be in the code of the package, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (f"line {node.lineno}: import {name}" for name in _imported(node) if name in UNSAFE_MODULES)
        elif isinstance(node, ast.Call):
            yield from (f"line {node.lineno}: {what}" for what in _called(node))


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return [] if isinstance(node, ast.ImportFrom) and node.level else [name.split(".")[0] for name in names]


def _called(node: ast.Call) -> Iterator[str]:
    name, arguments = ast.unparse(node.func), [ast.unparse(keyword) for keyword in node.keywords]
    if name in UNSAFE_CALLS or name.endswith((".read_pickle", ".to_pickle")):
        yield name
    if name in SAFE_ONLY_WITH and SAFE_ONLY_WITH[name] not in arguments:
        yield f"{name} without {SAFE_ONLY_WITH[name]}"
    if name.endswith((".from_pretrained", ".from_config")) and "trust_remote_code=False" not in arguments:
        yield f"{name} without trust_remote_code=False"
    for keyword in node.keywords:
        if keyword.arg in FORBIDDEN_VALUES and ast.unparse(keyword.value) != FORBIDDEN_VALUES[keyword.arg]:
            yield f"{keyword.arg}={ast.unparse(keyword.value)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_runs_code_from_files(path: Path) -> None:
    assert not list(findings(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from yaml import load",
        "eval('1')",
        "exec(text)",
        "torch.load(path)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
        "AutoModel.from_pretrained(path)",
        "AutoModel.from_pretrained(path, trust_remote_code=wanted)",
        "pandas.read_pickle(path)",
        "__import__(name)",
        "compile(text, name, 'exec')",
    ],
)
def test_the_look_finds(code: str) -> None:
    assert list(findings(ast.parse(code)))


@pytest.mark.parametrize("code", ["re.compile(x)", "model.eval()", "np.load(path, allow_pickle=False)", "json.load(f)"])
def test_the_look_leaves_alone(code: str) -> None:
    assert not list(findings(ast.parse(code)))
