"""Documents for the demo: the docstrings and sources of the installed Python.

The functions run on Spark's workers. They accept and return batches, and their results depend only
on the rows, so that a repeated task returns the same rows.
"""

import ast
import re
import sysconfig
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path

import numpy as np
import pyarrow as pa

SCHEMA = "id string, package string, kind string, doc string, source string"
DIMENSIONS = 256
_ARROW = pa.schema([(name, pa.string()) for name in ("id", "package", "kind", "doc", "source")])
_SKIPPED = {"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "_vendor"}
_MOST_SOURCE = 4000
_WORD = re.compile(r"[a-z]{3,}")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """the and for with that this from are not can will has have been its which when used use
        given into also other than such may only see note must then does but all any one each you
        return returns value values default parameters none true false int str self object type""",
    )
)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef | ast.Module


def standard_library() -> list[tuple[str, str]]:
    """Return the modules of the standard library, as names and paths."""
    return _modules(Path(sysconfig.get_path("stdlib")))


def packages(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the modules of installed packages, as names and paths."""
    root = Path(sysconfig.get_path("purelib"))
    return [each for name in names for each in _modules(root / name, name)]


def _modules(root: Path, prefix: str = "") -> list[tuple[str, str]]:
    found = {}
    for path in sorted(root.rglob("*.py")):
        steps = path.relative_to(root).with_suffix("").parts
        if _SKIPPED.isdisjoint(steps):
            known = [prefix, *steps] if prefix else list(steps)
            found[".".join(known).removesuffix(".__init__")] = str(path)
    return list(found.items())


def extract(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn rows of (module, path) into documents, one for each docstring."""
    for batch in batches:
        rows = [
            row
            for module, path in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for row in _documents(module, Path(path))
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)


def _documents(module: str, path: Path) -> list[dict[str, str]]:
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    lines = text.splitlines()
    found = {}
    for name, node in _documented(module, tree):
        doc = ast.get_docstring(node, clean=False)
        if doc:
            found[name] = {
                "id": name,
                "package": module.partition(".")[0],
                "kind": type(node).__name__.removesuffix("Def").removeprefix("Async").lower(),
                "doc": doc,
                "source": _source(lines, node),
            }
    return list(found.values())


def _documented(name: str, node: Documented) -> Iterator[tuple[str, Documented]]:
    yield name, node
    for child in node.body:
        if isinstance(child, Function | ast.ClassDef):
            yield from _documented(f"{name}.{child.name}", child)


def _source(lines: list[str], node: Documented) -> str:
    if isinstance(node, ast.Module):
        return ""
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])[:_MOST_SOURCE]


def clean(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Remove the indentation of the code from docstrings."""
    for batch in batches:
        docs = [cleandoc(doc) for doc in batch.column("doc").to_pylist()]
        place = batch.schema.get_field_index("doc")
        yield batch.set_column(place, "doc", pa.array(docs, pa.string()))


def embed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Compute a vector for each document: counts of its hashed words."""
    texts = zip(batch.column("id").to_pylist(), batch.column("doc").to_pylist(), strict=True)
    vectors = np.stack([vector_of(f"{id_} {doc}") for id_, doc in texts])
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS)
    return pa.RecordBatch.from_arrays([values], ["embedding"])


def with_embeddings(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add vectors to batches of documents, as lists for Spark."""
    for batch in batches:
        if batch.num_rows:
            vectors = embed(batch).column("embedding").cast(pa.list_(pa.float32()))
            yield batch.append_column("embedding", vectors)


def vector_of(text: str) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    """Return the normalised vector of a text."""
    counts = Counter(word for word in _WORD.findall(text.lower()) if word not in _COMMON)
    vector = np.zeros(DIMENSIONS, np.float32)
    if not counts:
        return vector
    hashes = np.array([zlib.crc32(word.encode()) for word in counts], np.uint32)
    weights = np.log1p(np.fromiter(counts.values(), np.float32))
    signs = np.where(hashes >> 31, np.float32(1), np.float32(-1))
    np.add.at(vector, hashes % DIMENSIONS, signs * weights)
    length = np.linalg.norm(vector)
    return vector / length if length else vector


def nearest(
    batches: Iterator[pa.RecordBatch],
    query: "np.ndarray[tuple[int], np.dtype[np.float32]]",
    most: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows whose vectors are closest to the query."""
    for batch in batches:
        vectors = batch.column("embedding").flatten().to_numpy()
        scores = vectors.reshape(-1, DIMENSIONS) @ query
        best = np.argsort(-scores)[:most]
        yield pa.RecordBatch.from_arrays(
            [batch.column("id").take(pa.array(best)), pa.array(scores[best].astype(np.float64))],
            ["id", "score"],
        )
