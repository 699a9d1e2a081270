"""Write docs/compatibility.md: the result of reading every fixture.

``python -m tests.compatibility`` needs the collection of fixtures beside the checkout, and pylance
for the few versions without a stored expectation.
"""

import sys
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from tests.fixtures_catalog import ROOT, SHARED, Case, cases

REPORT = ROOT / "docs" / "compatibility.md"
WIDEST = 110

HEAD = """\
# Compatibility

This page lists the result of reading each table and file of the collection. `make docs` reads all
of them and generates the page.

*equal*: the values match the expected ones bit by bit; the last column names what was compared.
The expectation is the correct data where the reference implementation is known to be wrong.
*refused*: the expected error was raised; the last column quotes it.

"""

TITLES = {
    "file": "Single data files",
    "table": "Tables: every version, branch and tag",
    "releases": "The same tables written by seven releases",
    "upstream": "Old, odd and broken tables of the Lance repository",
    "memwal": "Blobs, JSON and bfloat16",
}


class Line(NamedTuple):
    """One case of the report."""

    case: Case
    result: str
    detail: str


def run(case: Case) -> Line:
    """Read one case."""
    try:
        detail = case.check()
    except Exception as cause:
        return Line(case, "NOT READ", f"{type(cause).__name__}: {cause}")
    return Line(case, "refused" if case.is_refusal else "equal", detail)


def render(lines: Iterable[Line]) -> str:
    """Return the report."""
    lines = list(lines)
    parts = [HEAD, _totals(lines)]
    for suite, group in groupby(lines, key=lambda line: line.case.name.partition("/")[0]):
        parts.append(f"\n## {TITLES[suite]}\n\n")
        parts.append("| case | writer | file version | covers | result | compared, or reason |\n")
        parts.append("|---|---|---|---|---|---|\n")
        parts.extend(_row(line) for line in group)
    return "".join(parts)


def _totals(lines: list[Line]) -> str:
    text = "| collection | cases | equal | refused | not read |\n|---|---|---|---|---|\n"
    for suite, title in TITLES.items():
        results = [line.result for line in lines if line.case.name.startswith(f"{suite}/")]
        counts = [results.count(kind) for kind in ("equal", "refused", "NOT READ")]
        text += f"| {title} | {len(results)} | {' | '.join(map(str, counts))} |\n"
    return text


def _row(line: Line) -> str:
    case = line.case
    cells = (
        f"`{case.name}`",
        case.writer,
        case.version,
        _cell(case.covers),
        line.result,
        _cell(line.detail, widest=300),
    )
    return f"| {' | '.join(cells)} |\n"


def _cell(text: str, widest: int = WIDEST) -> str:
    text = text if len(text) <= widest else f"{text[: widest - 1]}…"
    # "fsl[12](…" would be a link.
    text = text.replace("](", "] (")
    return text.replace("|", "\\|").replace("\n", " ").replace("`", "'")


def listed() -> dict[str, str]:
    """Return the cases of the current report with their results."""
    found = {}
    for text in REPORT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in text.replace("\\|", "¦").split("|")[1:-1]]
        if len(cells) == 6 and cells[0].startswith("`"):
            found[cells[0].strip("`")] = cells[4]
    return found


def main() -> int:
    """Read all fixtures and write the report."""
    if not SHARED.exists():
        sys.stderr.write("the collection of fixtures was not found beside the checkout\n")
        return 1
    lines = [run(case) for case in cases(SHARED)]
    REPORT.write_text(render(lines), encoding="utf-8")
    unread = [line for line in lines if line.result == "NOT READ"]
    for line in unread:
        sys.stderr.write(f"{line.case.name}: {line.detail}\n")
    sys.stdout.write(f"{REPORT.name}: {len(lines)} cases, {len(unread)} not read\n")
    return 1 if unread else 0


if __name__ == "__main__":
    sys.exit(main())
