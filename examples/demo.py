"""Open a table that came with the sources and look into it; `make demo` runs this."""

from pathlib import Path

import lancetable

TABLE = Path(__file__).resolve().parent.parent / "tests" / "golden" / "history.lance"


def show(title: str, value: object) -> None:
    """Print one step of the tour."""
    print(f"\n— {title}\n{value}")


def main() -> None:
    """Walk through what a reader can do with a table."""
    table = lancetable.open_table(str(TABLE))
    show("the table", table)

    scan = table.scan(columns=["id", "v", "w"], where="v BETWEEN 10 AND 20 AND id % 2 = 0")
    show("a filtered scan", scan.to_arrow().to_pylist())
    show("how it is run", scan.explain())
    show("computed columns", table.scan(columns={"id": "id", "sum": "v + w"}, limit=3).to_arrow())

    show("three rows by position", table.take([100, 1, 50]).to_pylist())
    show("counting without reading", f"{table.count()} rows, {table.count('v > 50')} with v > 50")

    for entry in table.versions():
        old = lancetable.open_table(str(TABLE), version=entry.version)
        show(f"version {entry.version} of {entry.timestamp:%Y-%m-%d}", f"{old.count()} rows")
    show("tags", {name: f"version {tag.version}" for name, tag in table.tags.items()})


if __name__ == "__main__":
    main()
