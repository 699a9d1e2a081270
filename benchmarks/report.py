"""What does a stored run look like as a markdown table?

Run as `python -m benchmarks.report [FILE]`; without a file the newest run is shown.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import results


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def markdown(run: dict[str, Any]) -> str:
    """Return a run as a sentence on the machine and a table of the cases."""
    peers = run["peers"]
    sizes = ", reduced sizes" if run["quick"] else ""
    lines = [
        f"{run['started']}{sizes}: {results.machine_text(run)}.",
        "Medians ± half the distance of the quartiles; ratio = pylance / ours, above 1 is ahead.",
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
    path = parser.parse_args().file or results.newest()
    if path is None:
        parser.error("there is no stored run; make one with python -m benchmarks.run")
    sys.stdout.write(markdown(results.load(path)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
