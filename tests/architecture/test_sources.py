"""What the sources promise about their shape."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

SOURCES = ROOT / "src" / "lancetable"
GENERATED = SOURCES / "format" / "proto"
LONGEST = 400
FOREIGN = {"lance", "pylance", "pyspark"}
HEAVY = {"boto3", "lance", "numpy", "obstore", "pandas", "pyarrow", "pyroaring", "pyspark"}
HEAVY |= {"sqlglot", "zstandard"}
# What takes milliseconds, most of it in the standard library.
SLOW = {"asyncio", "concurrent", "dataclasses", "http", "inspect", "logging", "pathlib"}
SLOW |= {"typer", "urllib", "uuid"}

OWN = sorted(path for path in SOURCES.rglob("*.py") if GENERATED not in path.parents)
COMPILED = sorted([*SOURCES.rglob("*.c"), *SOURCES.rglob("*.h")])
PACKAGES = sorted(path.parent for path in SOURCES.rglob("__init__.py"))


def _name(path: Path) -> str:
    return path.relative_to(SOURCES).as_posix()


def _imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("path", OWN, ids=_name)
def test_a_module_answers_one_question(path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("path", COMPILED, ids=_name)
def test_a_compiled_source_says_what_it_holds_and_stays_short(path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) <= LONGEST
    assert lines[0].startswith("/* ")


@pytest.mark.parametrize("path", OWN, ids=_name)
def test_the_library_never_imports_the_reference_implementation(path) -> None:
    allowed = {"pyspark"} if SOURCES / "spark" in path.parents else set()
    assert not _imported(ast.parse(path.read_text("utf-8"))) & (FOREIGN - allowed)


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in SOURCES.rglob("*.py")}
    assert folders == set(PACKAGES)


@pytest.mark.parametrize(
    "statement",
    [
        "import lancetable",
        "import sys, lancetable.cli; sys.argv[1:] = ['--help']; lancetable.cli.main()",
        "import lancetable; lancetable.open_table({table!r}).count()",
    ],
    ids=["import", "command line", "open and count"],
)
def test_start_is_light(statement, history) -> None:
    program = f"{statement.format(table=history)}; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & HEAVY
    assert not loaded & SLOW
