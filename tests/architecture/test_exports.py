"""The public names: each package's ``__all__`` is sorted, complete and real."""

import ast
import importlib

import pytest

import lancetable
from lancetable import errors
from tests.conftest import ROOT

SOURCES = ROOT / "src" / "lancetable"
MODULES = sorted(
    ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCES.rglob("*.py")
    if path.parent.name != "proto"
)
PACKAGES = [name for name in MODULES if (SOURCES.parent / name.replace(".", "/")).is_dir()]


def test_the_package_exports_what_it_says() -> None:
    assert lancetable.__all__ == sorted(lancetable.__all__)
    assert dir(lancetable) == lancetable.__all__
    for name in lancetable.__all__:
        assert getattr(lancetable, name) is not None
    with pytest.raises(AttributeError, match="create_universe"):
        getattr(lancetable, "create_universe")  # noqa: B009


def test_every_error_is_exported() -> None:
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.LanceTableError)
    }
    assert raised == {name for name in lancetable.__all__ if name.endswith("Error")}
    assert all(name in (errors.__doc__ or "") for name in raised)


def _needs_spark(name) -> None:
    if name.startswith("lancetable.spark"):
        pytest.importorskip("pyspark")


@pytest.mark.parametrize("name", MODULES)
def test_all_is_sorted_and_real(name) -> None:
    _needs_spark(name)
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", ())
    assert list(exported) == sorted(set(exported))
    for entry in exported:
        getattr(module, entry)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_exports_all_it_imports_from_itself(name) -> None:
    _needs_spark(name)
    tree = ast.parse((SOURCES.parent / name.replace(".", "/") / "__init__.py").read_text("utf-8"))
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(name)
        for alias in node.names
    }
    assert imported <= set(getattr(importlib.import_module(name), "__all__", ()))
