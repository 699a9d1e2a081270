"""pylance returns deleted rows with the same nulls."""

import pyarrow as pa
import pytest

import lancetable as lt

lance = pytest.importorskip("lance")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("stable", [False, True])
def test_deleted_rows(tmp_path, stable):
    uri = str(tmp_path / "t")
    rows = pa.table({"id": range(40), "s": [str(n) for n in range(40)]})
    lance.write_dataset(rows, uri, max_rows_per_file=10, enable_stable_row_ids=stable)
    lance.dataset(uri).delete("id % 4 = 1 or (id >= 20 and id < 30)")
    theirs, ours = lance.dataset(uri), lt.open_table(uri)
    columns = ["id", "s", "_rowoffset", "_rowaddr"]
    for where in (None, "id > 7", "_rowid IS NULL", "_rowid IS NOT NULL AND id < 12"):
        for limit, offset in ((None, None), (7, 3)):
            expected = theirs.to_table(
                columns=columns,
                filter=where,
                limit=limit,
                offset=offset,
                with_row_id=True,
                include_deleted_rows=True,
                late_materialization=False,
            )
            found = ours.scan(
                columns,
                where=where,
                limit=limit,
                offset=offset or 0,
                with_row_id=True,
                include_deleted=True,
            )
            assert found.to_arrow().to_pydict() == expected.to_pydict()
            assert found.count() == expected.num_rows
