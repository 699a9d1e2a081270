"""Render a stored run as a markdown table or as a page with plots.

Run as `python -m benchmarks.report [FILE]`; without a file the newest run is shown. With `--docs`
the page `docs/benchmarks.md` and its plots are written.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import plot, results
from benchmarks.measure import COMPARED

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
PLOTS = PAGE.with_suffix("")

_INTRODUCTION = """# Benchmarks

`make bench` writes this page; `make bench-smoke` runs the same cases on small tables in two
minutes. All peers are measured in one run on the same rows. Calls of pylance and lancetable
alternate, so the ratio is more reliable than the times. `memcpy` and raw write speed show the
load of the machine. Recall is the part of the ten nearest rows that an index finds, and its
ratio is that of lancetable to pylance. The first of a series of short calls is not counted,
because it depends on the caches and threads of the other library. Parquet and Delta hold the same
rows in their own formats and have no figure for operations they lack. Peak RSS includes mapped
pages of files, which the system can drop at any time; anonymous RSS does not.

"""
_LINEAR = 1.15
"""Largest power of the size that counts as linear; the excess is noise."""


def write_docs(run: dict[str, Any]) -> Path:
    """Write the page and its plots; return the page."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    for old in PLOTS.glob("*.svg"):
        old.unlink()
    parts = [_INTRODUCTION + _warning(run), markdown(run), _ratios(run), *_growth(run)]
    PAGE.write_text("\n".join(parts))
    return PAGE


def _warning(run: dict[str, Any]) -> str:
    """Return a sentence about a busy machine, when it was one."""
    facts = run["machine"]
    if facts["load"] <= facts["cores"]:
        return ""
    return (
        f"**The machine was busy (load {facts['load']} on {facts['cores']} cores): these figures"
        " only show that the suite runs.**\n"
    )


def _plot(name: str, title: str, content: str) -> str:
    (PLOTS / f"{name}.svg").write_text(content)
    return f"![{title}]({PLOTS.name}/{name}.svg)\n"


def _ratios(run: dict[str, Any]) -> str:
    shown = [
        (entry["title"], entry["ratio"], entry["target"])
        for entry in run["cases"]
        if entry["ratio"] and not entry.get("is_growth")
    ]
    if not shown:
        return ""
    title = "pylance / lancetable, marks are targets"
    return "## Ratios\n\n" + _plot("ratios", title, plot.bars(title, shown))


def _growth(run: dict[str, Any]) -> Iterator[str]:
    """Yield a plot for each case that was measured at several sizes."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for entry in run["cases"]:
        if entry.get("is_growth"):
            cases.setdefault(entry["name"], []).append(entry)
    if cases:
        yield "## Growth\n"
        yield _powers(cases)
    for name, entries in cases.items():
        lines = {
            peer: [
                (entry["size"], entry["peers"][peer]["median"])
                for entry in entries
                if "median" in entry["peers"].get(peer, {})
            ]
            for peer in run["peers"]
        }
        title = entries[0]["title"]
        drawn = {peer: line for peer, line in lines.items() if line}
        if drawn:
            yield _plot(name, title, plot.curves(title, entries[0]["table"], drawn))


def _powers(cases: dict[str, list[dict[str, Any]]]) -> str:
    """Return how the times of both libraries grow, as powers of the size."""
    lines = [
        "The time grows with this power of the size between the two largest sizes: 1 is linear,",
        f"2 is quadratic. Values above {_LINEAR:g} are bold.",
        "",
        _row(["case", "sizes", *COMPARED]),
        _row(["---", "---", *["---:"] * len(COMPARED)]),
    ]
    for entries in cases.values():
        shown = [results.growth_power(entries, peer) for peer in COMPARED]
        sizes = " to ".join(f"{entry['size']:,}" for entry in entries[-2:])
        lines.append(_row([entries[0]["title"], sizes, *map(_power_text, shown)]))
    return "\n".join(lines) + "\n"


def _power_text(power: float | None) -> str:
    if power is None:
        return "-"
    return f"**{power:.2f}**" if power > _LINEAR else f"{power:.2f}"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def markdown(run: dict[str, Any]) -> str:
    """Return a run as a sentence on the machine and a table of the cases."""
    peers = run["peers"]
    sizes = ", reduced sizes" if run["quick"] else ""
    lines = [
        f"{run['started']}{sizes}: {results.machine_text(run)}.",
        "Medians ± half the interquartile range; ratio = pylance / ours, above 1 is better.",
        "",
        _row(["case", "table", *peers, "ratio", "target", ""]),
        _row(["---", "---", *["---:"] * len(peers), "---:", "---:", "---"]),
    ]
    lines += [
        _row(
            [
                entry["title"],
                f"{entry['table']} {entry['size']:,}",
                *[results.peer_text(entry, peer) for peer in peers],
                results.ratio_text(entry),
                results.target_text(entry),
                results.mark_text(entry),
            ]
        )
        for entry in run["cases"]
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the table to standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--docs", action="store_true", help="write docs/benchmarks.md")
    chosen = parser.parse_args()
    path = chosen.file or results.newest()
    if path is None:
        parser.error("there is no stored run; make one with python -m benchmarks.run")
    if chosen.docs:
        sys.stdout.write(f"{write_docs(results.load(path))}\n")
        return 0
    sys.stdout.write(markdown(results.load(path)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
