"""Indices that follow new rows by themselves, when the config of the table says so."""

import logging

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.operations.cover import wanted
from lancetable.operations.index import optimize


def rows(first: int, stop: int) -> pa.Table:
    return pa.table({"id": range(first, stop), "s": [f"k{i}" for i in range(first, stop)]})


@pytest.fixture
def table(tmp_path):
    made = lt.create_table(tmp_path / "t", rows(0, 100))
    made.indices.create("id", "btree")
    made.indices.create("s", "bitmap")
    return made


def uncovered(table):
    return [one.rows_uncovered for one in table.indices.list()]


def test_nothing_follows_by_default(table):
    version = table.version
    table.append(rows(100, 150))
    assert (table.version, uncovered(table)) == (version + 1, [50, 50])


def test_appends_are_followed_above_a_number_of_rows(table):
    table.config.update({"lancetable.index.auto": "append", "lancetable.index.auto.rows": "50"})
    version = table.version
    done = table.append(rows(100, 150))
    assert (done.version, table.version) == (version + 1, version + 1)
    done = table.append(rows(150, 151))
    assert (done.version, done.rows, table.version) == (version + 2, 1, version + 3)
    assert uncovered(table) == [0, 0]
    assert [len(one.segments) for one in table.indices.list()] == [2, 2]
    assert table.history(limit=1)[0].message == f"indices extended after version {version + 2}"
    assert table.scan(where="id = 150").to_arrow().num_rows == 1
    assert lt.open_table(table.uri).version == table.version


def test_every_change_that_brings_rows_is_followed(table):
    table.config.update({"lancetable.index.auto": "auto", "lancetable.index.auto.rows": "0"})
    table.update({"s": "'new'"}, "id < 10")
    assert uncovered(table) == [0, 0]
    table.merge(
        rows(90, 110), on="id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    assert uncovered(table) == [0, 0]
    table.overwrite(rows(0, 5), where="id < 5")
    assert uncovered(table) == [0, 0]
    table.compact(indices="uncover", deleted_share=0)
    assert uncovered(table) == [0, 0]
    fragments = [table.write_fragments(rows(200, 210))]
    table.commit_fragments(fragments)
    assert uncovered(table) == [0, 0]
    table.delete("id = 200")
    prepared = table.update_uncommitted({"s": "'later'"}, "id = 201")
    done = table.commit_prepared(prepared)
    assert done.version == table.version - 1
    assert uncovered(table) == [0, 0]
    assert max(len(one.segments) for one in table.indices.list()) == 3


def test_a_failure_is_logged_only(table, monkeypatch, caplog):
    table.config.update({"lancetable.index.auto": "append", "lancetable.index.auto.rows": "0"})

    def fails(*_):
        raise lt.StoreError("no space")

    monkeypatch.setattr(optimize, "build_segments", fails)
    with caplog.at_level(logging.WARNING):
        done = table.append(rows(100, 110))
    assert (done.version, done.rows) == (table.version, 10)
    assert "were not extended after version" in caplog.text
    assert "no space" in caplog.text
    assert uncovered(table) == [10, 10]
    assert table.count() == 110


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"lancetable.index.auto": "sometimes"}, "is 'sometimes'; expected one of off, append"),
        ({"lancetable.index.auto.rows": "-1"}, "is '-1'; expected a whole number"),
    ],
)
def test_what_is_not_understood_does_nothing(table, config, message, caplog):
    with pytest.raises(lt.InputError, match=message):
        wanted(config)
    table.config.update({"lancetable.index.auto": "append", **config})
    table.append(rows(100, 110))
    assert message in caplog.text
    assert uncovered(table) == [10, 10]
