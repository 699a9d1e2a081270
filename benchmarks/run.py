"""Which cases are measured with which peers, and what came out?

Run as `python -m benchmarks.run`; one JSON file per run goes to `benchmarks/results`.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import report, results
from benchmarks.cases import CASES, Case
from benchmarks.data import data_folder, ensure_table, rows_of, table_path, table_size
from benchmarks.machine import copy_speed, machine_facts
from benchmarks.measure import measure
from benchmarks.peers import Peer, load_peer, peer_names

SMOKE_ROUNDS = 2
_SLOW = (
    "build_ivf_hnsw_sq_vector_peak",
    "build_ivf_pq_vector_peak",
    "build_limited_peak",
    "compact_peak",
    "compact_little_peak",
    "grow_versions_append",
    "grow_versions_list",
    "merge_peak",
    "writers_4",
)
"""Cases that a smoke run leaves out: a round takes long, or needs more rows than it has."""
_STYLES = {"hit": "green", "miss": "red", "": ""}


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument(
        "--case", action="append", metavar="NAME", help="only cases whose name starts so"
    )
    parser.add_argument("--peer", action="append", choices=peer_names(), help="only these peers")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds per case")
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    parser.add_argument(
        "--smoke", action="store_true", help="smaller tables, a few rounds, no slow cases"
    )
    parser.add_argument(
        "--docs", action="store_true", help="write docs/benchmarks.md and its plots"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to store the run")
    parser.add_argument("--list", action="store_true", help="show the cases and stop")
    chosen = parser.parse_args(arguments)
    if chosen.smoke:
        chosen.quick, chosen.repeat = True, chosen.repeat or SMOKE_ROUNDS
        chosen.peer = chosen.peer or ["ours", "pylance"]
    if chosen.repeat is not None and chosen.repeat < 1:
        parser.error("--repeat needs at least 1")
    if not _cases(chosen.case):
        parser.error(f"no case starts with {' or '.join(chosen.case)}; --list shows them")
    return chosen


def _cases(prefixes: Sequence[str] | None) -> list[Case]:
    exact = {case.name for case in CASES}.intersection(prefixes or ())
    return [
        case
        for case in CASES
        if not prefixes
        or case.name in exact
        or any(case.name.startswith(text) for text in prefixes if text not in exact)
    ]


def _list_cases(console: Console) -> None:
    table = Table("case", "what", "table", "target", box=None)
    for case in CASES:
        target = "" if case.target is None else f"{case.target:g}"
        table.add_row(case.name, case.title, case.table, target)
    console.print(table)


def _load_peers(names: Sequence[str], console: Console) -> list[Peer]:
    peers = []
    for name in names:
        try:
            peers.append(load_peer(name))
        except ImportError as error:
            console.print(f"{name} is left out: {error}", style="yellow")
    return peers


def _show(run: dict[str, Any], console: Console) -> None:
    table = Table(caption=results.machine_text(run), caption_justify="left")
    table.add_column("case", no_wrap=True)
    table.add_column("what")
    for peer in run["peers"]:
        table.add_column(peer, justify="right", no_wrap=True)
    for title in ("pylance / ours", "target"):
        table.add_column(title, justify="right")
    table.add_column("")
    for entry in run["cases"]:
        mark = results.mark_text(entry)
        table.add_row(
            entry["name"],
            f"{entry['title']} ({entry['size']:,})",
            *[results.peer_text(entry, peer) for peer in run["peers"]],
            results.ratio_text(entry),
            results.target_text(entry),
            mark,
            style=_STYLES[mark],
        )
    console.print(table)
    for entry in run["cases"]:
        for peer, summary in entry["peers"].items():
            if "error" in summary and not results.is_left_out(summary):
                console.print(f"{entry['name']}, {peer}: {summary['error']}", markup=False)


def _measure_all(
    cases: Sequence[Case], peers: Sequence[Peer], chosen: argparse.Namespace, run: dict[str, Any]
) -> None:
    progress = Console(stderr=True)
    every = [(case, size) for case in cases for size in _sizes(case, quick=chosen.quick)]
    for number, (case, size) in enumerate(every, 1):
        if not table_path(case.table, quick=chosen.quick, size=size).exists():
            progress.print(f"writing table {case.table} ({size:,})")
        uri = str(ensure_table(case.table, quick=chosen.quick, size=size))
        outcome = measure(case, uri, rows_of(case.table, size), peers, repeat=chosen.repeat)
        entry = results.record(outcome, size)
        run["cases"].append(entry)
        # Stored after every case: a run that is broken off keeps what it has.
        results.store(run, chosen.json)
        ratio = f"{results.ratio_text(entry)} {results.mark_text(entry)}"
        progress.print(f"{number}/{len(every)} {case.name} ({size:,}): {ratio}")


def _sizes(case: Case, *, quick: bool) -> tuple[int, ...]:
    sizes = case.quick_sizes if quick else case.sizes
    return sizes or (table_size(case.table, quick=quick),)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show and store; the exit code tells of failed or unequal cases, not of speed."""
    chosen = _arguments(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    if chosen.list:
        _list_cases(console)
        return 0
    peers = _load_peers(chosen.peer or peer_names(), console)
    if not peers:
        return 1
    started = datetime.now(UTC).replace(microsecond=0)
    chosen.json = chosen.json or results.FOLDER / f"{started:%Y%m%dT%H%M%SZ}.json"
    run: dict[str, Any] = {
        "started": started.isoformat(),
        "quick": chosen.quick,
        "peers": [peer.name for peer in peers],
        "machine": machine_facts(data_folder()),
        "cases": [],
    }
    cases = [case for case in _cases(chosen.case) if not (chosen.smoke and case.name in _SLOW)]
    _measure_all(cases, peers, chosen, run)
    run["machine"]["memcpy_gb_per_s_after"] = copy_speed()
    results.store(run, chosen.json)
    _show(run, console)
    console.print(f"stored in {chosen.json}", soft_wrap=True)
    if chosen.docs:
        console.print(f"reported in {report.write_docs(run)}", soft_wrap=True)
    return 0 if results.is_sound(run) else 1


if __name__ == "__main__":
    sys.exit(main())
