"""The table as its user sees it."""

import pickle
import shutil
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from lancetable import open_table
from lancetable.errors import (
    FileNotFoundInStoreError,
    InputError,
    TableNotFoundError,
    VersionNotFoundError,
)


@pytest.fixture
def table(history):
    return open_table(history)


def test_what_a_table_tells_about_itself(table, history):
    assert table.uri == history
    assert table.version == 6
    assert table.branch is None
    assert len(table) == table.count() == 136
    assert table.schema.names == ["id", "v", "w"]
    assert len(table.fragments) == 4
    assert isinstance(table.timestamp, datetime)
    assert table.size >= 0
    assert [info.version for info in table.versions()] == [1, 2, 3, 4, 5, 6]


def test_settings_and_metadata(golden):
    table = open_table(str(golden / "table" / "config_metadata.lance"))

    assert table.config == {"lance.auto_cleanup.interval": "20"}
    assert table.metadata == {"owner": "me"}


def test_tags_branches_and_indices(golden):
    tagged = open_table(str(golden / "table" / "tags.lance"), tag="v1-tag")
    assert tagged.version == 1
    assert {name: tag.version for name, tag in tagged.tags.items()} == {
        "latest.tag": 3,
        "v1-tag": 1,
    }
    assert open_table(str(golden / "table" / "branches.lance")).branches
    assert open_table(str(golden / "table" / "with_index.lance")).indices


def test_checkout_moves_the_table_and_refresh_moves_it_back(table):
    later = table.schema
    assert table.checkout(1) is table
    assert table.version == 1
    assert table.schema != later
    assert table.scan().to_arrow().num_rows == table.count()

    table.refresh()

    assert table.version == 6
    assert table.schema == later


def test_a_time_picks_the_version_of_that_time(history, table):
    times = {info.version: info.timestamp for info in table.versions()}

    assert open_table(history, as_of=times[3]).version == 3
    assert open_table(history, as_of=datetime.now(UTC)).version == 6


def test_head_and_sample(table):
    whole = table.scan().to_arrow()

    assert table.head(3).equals(whole.slice(0, 3))
    assert len(table.head()) == 10
    drawn = table.sample(20, seed=7)
    assert drawn.equals(table.sample(20, seed=7))
    ids = drawn["id"].to_pylist()
    assert len(set(ids)) == 20
    assert set(ids) <= set(whole["id"].to_pylist())
    assert table.sample(1000).equals(whole)
    with pytest.raises(InputError):
        table.sample(-1)


def test_counting_with_a_predicate(table):
    ids = table.scan(["id"]).to_arrow()["id"].to_pylist()

    assert table.count("id > 20") == sum(number > 20 for number in ids)


def test_a_table_can_be_pickled(table):
    table.checkout(2)

    copy = pickle.loads(pickle.dumps(table))

    assert copy.version == 2
    assert copy.scan().to_arrow().equals(table.scan().to_arrow())


def test_it_shows_itself(table):
    text, markup = repr(table), table._repr_html_()

    for word in ("136", "double", "id"):
        assert word in text
        assert word in markup
    assert "fragments  4" in text


def test_names_are_escaped_in_a_notebook(tmp_path, history):
    place = tmp_path / "<b>.lance"
    shutil.copytree(history, place)

    assert "<b>.lance" not in open_table(str(place))._repr_html_()


def test_opening_and_counting_load_no_array_library(history):
    program = (
        "import sys, lancetable\n"
        f"table = lancetable.open_table({history!r})\n"
        "assert table.count() == 136\n"
        "print(sorted({'pyarrow', 'numpy', 'sqlglot'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_a_missing_data_file_is_named(tmp_path, history):
    place = tmp_path / "copy.lance"
    shutil.copytree(history, place)
    for file in (place / "data").iterdir():
        file.unlink()

    table = open_table(str(place))

    assert table.count() == 136
    with pytest.raises(FileNotFoundInStoreError, match=r"version 6 needs this data file"):
        table.scan().to_arrow()


def test_missing_tables_and_versions(tmp_path, history):
    with pytest.raises(TableNotFoundError):
        open_table(str(tmp_path))
    with pytest.raises(VersionNotFoundError):
        open_table(history, version=77)
    with pytest.raises(InputError):
        open_table(history, version=1, tag="x")
    with pytest.raises(InputError, match="give an address or a path"):
        open_table(3)  # type: ignore[arg-type]
