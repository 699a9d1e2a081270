"""Count the calls that a small read or change makes inside lancetable.

Run as ``python -m benchmarks.walk``. Each case runs twice in one process and the second run is
counted, so that imports and caches of the process are left out. ``--top`` lists the functions that
are called most often.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pyarrow as pa

import lancetable

PACKAGE = str(Path(lancetable.__file__).parent)


class Walk(NamedTuple):
    """What one call did: calls of each function by module and name, and the deepest nesting."""

    functions: Counter[tuple[str, str]]
    depth: int

    @property
    def calls(self) -> int:
        """The number of calls of functions of lancetable, comprehensions included."""
        return self.functions.total()

    @property
    def modules(self) -> int:
        """The number of different modules of lancetable."""
        return len({module for module, _ in self.functions})


def walk(work: Callable[[], object]) -> Walk:
    """Run a function and count the calls of functions of lancetable."""
    functions: Counter[tuple[str, str]] = Counter()
    depth = deepest = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return
        if event == "call":
            depth += 1
            deepest = max(deepest, depth)
            functions[code.co_filename.removeprefix(PACKAGE), code.co_qualname] += 1
        elif event == "return":
            depth -= 1

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return Walk(functions, deepest)


def _rows(start: int, stop: int) -> pa.Table:
    ids = pa.array(range(start, stop), pa.int64())
    return pa.table({"id": ids, "a": ids, "name": [f"name {one}" for one in range(start, stop)]})


def _scan(path: str) -> object:
    return lancetable.open_table(path).scan(["a"], where="a > 5").to_arrow()


def _append(path: str) -> object:
    return lancetable.open_table(path).append(_rows(5000, 5001))


def _merge(path: str) -> object:
    merge = lancetable.open_table(path).merge(_rows(2, 4), on="id")
    return merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _delete(path: str) -> object:
    return lancetable.open_table(path).delete("id = 77")


def _take(path: str) -> object:
    return lancetable.open_table(path).take([3, 500])


CASES: Mapping[str, Callable[[str], object]] = {
    'open + scan(["a"], where="a > 5").to_arrow()': _scan,
    "open + append(1 row)": _append,
    "open + merge(2 rows)": _merge,
    'open + delete("id = 77")': _delete,
    "open + take([3, 500])": _take,
}


def measure(case: Callable[[str], object]) -> Walk:
    """Return the second walk of a case, each run on a new table of a thousand rows."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "second"):
            lancetable.create_table(f"{folder}/{name}.lance", _rows(0, 1000))
        case(f"{folder}/first.lance")
        return walk(lambda: case(f"{folder}/second.lance"))


def main() -> None:
    """Print the walk of every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=int, default=0, help="functions to list for each case")
    top: int = parser.parse_args().top
    print(f"{'call':<48}{'calls':>7}{'functions':>11}{'modules':>9}{'depth':>7}")
    for name, case in CASES.items():
        found = measure(case)
        print(f"{name:<48}{found.calls:>7}{len(found.functions):>11}", end="")
        print(f"{found.modules:>9}{found.depth:>7}")
        for (module, function), calls in found.functions.most_common(top):
            print(f"{calls:>8}  {module.lstrip('/')} {function}")


if __name__ == "__main__":
    main()
