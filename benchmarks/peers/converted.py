"""Tables in other formats: the rows of a table of the suite, written once beside it."""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from benchmarks.data import data_folder

_COMPARISON = re.compile(r"(\w+)\s*(<|>=)\s*(-?[\d.]+)$")


def converted(uri: str, ending: str, write: Callable[[pa.RecordBatchReader, str], None]) -> str:
    """Return where the rows of a table are in another format, writing them on first use.

    Copies made for cases that change a table are not converted: such cases are not for formats
    without these changes.
    """
    target = Path(f"{uri}.{ending}")
    if Path(uri).parent == data_folder() and not target.exists():
        import lance

        unfinished = target.with_name(target.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write(lance.dataset(uri).scanner().to_reader(), str(unfinished))
        unfinished.rename(target)
    return str(target)


def predicate(where: str) -> pc.Expression:
    """Return a conjunction of comparisons with numbers, as the cases use them."""
    found: pc.Expression | None = None
    for part in where.split(" AND "):
        match = _COMPARISON.match(part.strip())
        if match is None:
            unsupported(f"the predicate {where}")
        name, sign, text = match.groups()
        number: Any = float(text) if "." in text else int(text)
        one = pc.field(name) < number if sign == "<" else pc.field(name) >= number
        found = one if found is None else found & one
    if found is None:
        unsupported("an empty predicate")
    return found


def unsupported(what: str) -> NoReturn:
    """Say that a peer is not measured for this.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(f"this peer is not measured for {what}")


class DatasetHandle:
    """Reading through pyarrow's datasets, which both formats offer."""

    def __init__(self, dataset: ds.Dataset, number: int) -> None:
        self._dataset = dataset
        self._number = number

    def version(self) -> int:
        return self._number

    def count(self, where: str | None = None) -> int:
        return int(self._dataset.count_rows(filter=None if where is None else predicate(where)))

    def scan(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        chosen = None if where is None else predicate(where)
        return self._dataset.to_table(columns=columns, filter=chosen)

    def stream(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        return iter(self._dataset.to_batches(columns=columns))

    def take(self, rows: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        return self._dataset.take(rows, columns=columns)

    def head(self, rows: int) -> pa.Table:
        return self._dataset.head(rows)

    def __getattr__(self, name: str) -> NoReturn:
        """Say so of everything else."""
        unsupported(name)
