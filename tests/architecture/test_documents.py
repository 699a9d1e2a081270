"""The documents: the tree is complete, the examples run, and no machine shows through."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

SOURCES = ROOT / "src" / "lancetable"
EXAMPLES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([\w-]*[./][\w./-]*)(?:#[^)]*)?\)")

# Paths of one machine and addresses of package mirrors. The brackets keep this file from matching.
TRACES = [
    re.compile(pattern)
    for pattern in [
        r"(?<![\w.])/(?:h[o]me|U[s]ers|r[o]ot|w[o]rk|t[m]p)/\w+",
        r"(?:p[y]pi|pyth[o]nhosted)\.org",
        r"art[i]factory|dev[p]i",
        r"--(?:index-u[r]l|find-l[i]nks|trusted-h[o]st)",
    ]
]


def _tracked() -> list[Path]:
    """The files of the project; of the folders with sources where git does not know better."""
    if shutil.which("git"):
        listed = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if listed.returncode == 0 and listed.stdout:
            return [ROOT / name for name in listed.stdout.splitlines()]
    folders = ["src", "tests", "docs", "examples", "benchmarks", "protos"]
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return [*ROOT.glob("*.md"), *ROOT.glob("*.t*"), ROOT / "Makefile", *found]


def test_the_tree_in_the_architecture_names_every_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    tree = text.partition("```\n")[2].partition("```")[0]
    drawn = set(re.findall(r"[├└]── ([\w/]+)", tree))
    for package in SOURCES.rglob("__init__.py"):
        if package.parent != SOURCES:
            assert f"{package.parent.name}/" in drawn, package
    for module in SOURCES.glob("*.py"):
        assert module.stem in {name.removesuffix(".py") for name in drawn}, module


def test_the_files_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:[\w.]+/)+[\w.]*)`", text)) - {"docs/benchmarks.md"}
    assert len(named) > 20
    for name in named:
        assert (SOURCES / name).exists() or (ROOT / name).exists(), name


def test_the_architecture_has_a_paragraph_for_each_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for package in SOURCES.iterdir():
        if (package / "__init__.py").exists():
            assert f"\n**`{package.name}`**" in text, package


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path, tmp_path, monkeypatch) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "example"}
    for block in PYTHON_BLOCK.findall(path.read_text("utf-8")):
        exec(compile(block, path.name, "exec"), scope)


def test_the_readme_has_an_example() -> None:
    assert PYTHON_BLOCK.search((ROOT / "README.md").read_text("utf-8"))


def test_links_between_documents_lead_somewhere() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in LINK.findall(path.read_text("utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_no_machine_shows_through() -> None:
    for path in _tracked():
        if not path.is_file() or path.suffix == ".pyc":
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        assert [found for trace in TRACES for found in trace.findall(text)] == [], path
