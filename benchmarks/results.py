"""How is a run stored, and how is one of its values written for people?"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Outcome

FOLDER = Path(__file__).parent / "results"


def record(outcome: Outcome, size: int) -> dict[str, Any]:
    """Return a case's outcome on a table of some size as plain values."""
    case = outcome.case
    return {
        "name": case.name,
        "title": case.title,
        "table": case.table,
        "size": size,
        "is_growth": bool(case.sizes),
        "unit": case.unit.value,
        "target": case.target,
        "ratio": outcome.ratio,
        "is_hit": outcome.is_hit,
        "is_equal": outcome.is_equal,
        "peers": {name: samples.summary() for name, samples in outcome.peers.items()},
    }


def store(run: dict[str, Any], path: Path) -> None:
    """Write a run, complete or not, to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run, indent=1) + "\n")


def load(path: Path) -> dict[str, Any]:
    """Read a stored run."""
    run: dict[str, Any] = json.loads(path.read_text())
    return run


def newest() -> Path | None:
    """Return the last run in the results folder."""
    return max(FOLDER.glob("*.json"), default=None)


def growth_power(entries: Sequence[dict[str, Any]], peer: str) -> float | None:
    """Return with which power of the size a peer's time grows between the two largest sizes."""
    known = [
        (entry["size"], entry["peers"][peer]["median"])
        for entry in entries
        if "median" in entry["peers"].get(peer, {})
    ]
    if len(known) < 2:
        return None
    (size, time), (larger, longer) = known[-2:]
    return math.log(longer / time) / math.log(larger / size)


def _amount(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / 2**20:.0f} MB"
    if unit == "recall":
        return f"{value:.3f}"
    factor, name = next(
        (pair for pair in ((1, "s"), (1e3, "ms")) if value * pair[0] >= 1), (1e6, "us")
    )
    scaled = value * factor
    return f"{scaled:.3g} {name}" if scaled < 100 else f"{scaled:.0f} {name}"


def is_left_out(summary: dict[str, Any]) -> bool:
    """Return whether a peer has no figure because it is not measured for the case."""
    return str(summary.get("error", "")).startswith("NotImplementedError")


def peer_text(entry: dict[str, Any], peer: str) -> str:
    """Return a peer's median and half the distance of the quartiles, or why there is none."""
    summary = entry["peers"].get(peer)
    if summary is None:
        return "-"
    if "error" in summary:
        return "-" if is_left_out(summary) else "failed"
    low, high = summary["quartiles"]
    spread = (high - low) / 2 / summary["median"]
    return f"{_amount(summary['median'], entry['unit'])} ±{spread:.0%}"


def ratio_text(entry: dict[str, Any]) -> str:
    """Return pylance's median over ours."""
    if entry["is_equal"] is False:
        return "unequal"
    return "-" if entry["ratio"] is None else f"{entry['ratio']:.2f}"


def target_text(entry: dict[str, Any]) -> str:
    """Return the least accepted ratio."""
    return "" if entry["target"] is None else f"{entry['target']:g}"


def mark_text(entry: dict[str, Any]) -> str:
    """Return whether the target is reached."""
    return {True: "hit", False: "miss", None: ""}[entry["is_hit"]]


def machine_text(run: dict[str, Any]) -> str:
    """Return the machine of a run in one line."""
    facts = run["machine"]
    libraries = ", ".join(f"{name} {text}" for name, text in facts["libraries"].items() if text)
    return (
        f"{facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}, "
        f"Python {facts['python']}, {libraries}, "
        f"memcpy {facts['memcpy_gb_per_s']} GB/s,"
        f" raw write {facts.get('write_gb_per_s', '-')} GB/s, load {facts['load']}"
    )


def is_sound(run: dict[str, Any]) -> bool:
    """Return whether no case failed with any peer that has it, or gave unequal results."""
    return all(
        entry["is_equal"] is not False
        and not any(
            "error" in summary and not is_left_out(summary) for summary in entry["peers"].values()
        )
        for entry in run["cases"]
    )
