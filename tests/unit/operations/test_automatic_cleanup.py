"""Automatic cleanup: when it runs, what its settings mean, and that it never fails a commit."""

import logging
from datetime import timedelta

import pytest

import lancetable as lt
from lancetable.errors import InputError
from lancetable.operations.retry import (
    INTERVAL,
    OLDER_THAN,
    RETAIN_VERSIONS,
    automatic_options,
    duration,
)


def _versions(table: lt.Table) -> list[int]:
    return [one.version for one in table.versions()]


def _table(path, **settings: str) -> lt.Table:
    table = lt.create_table(path, [{"a": 1}])
    table.config.update({f"lance.auto_cleanup.{key}": value for key, value in settings.items()})
    return table


def test_every_so_many_versions_are_cleaned(tmp_path) -> None:
    table = _table(tmp_path / "t", interval="4", older_than="0s")
    seen = []
    for number in range(7):
        table.append([{"a": number}])
        seen.append(_versions(table))
    assert seen[0] == [1, 2, 3]
    assert seen[1] == [4]
    assert seen[2:] == [[4, 5], [4, 5, 6], [4, 5, 6, 7], [8], [8, 9]]
    assert table.count() == 8
    assert table.maintenance.check(level="data").is_ok


def test_every_kind_of_change_is_followed_by_it(tmp_path) -> None:
    table = _table(tmp_path / "t", interval="1", older_than="0s")
    merge = table.merge([{"a": 5}], on="a").when_not_matched_insert_all()
    for act in (
        lambda: table.append([{"a": 2}]),
        lambda: table.update({"a": "a + 10"}),
        lambda: table.delete("a = 11"),
        lambda: table.columns.add({"b": "a"}),
        merge.execute,
        table.compact,
        lambda: table.overwrite([{"a": 1, "b": 2}]),
    ):
        before = table.version
        act()
        if table.version != before:
            assert _versions(table) == [table.version]


def test_a_number_of_versions_and_names_stay(tmp_path) -> None:
    table = _table(tmp_path / "t", interval="2", retain_versions="3")
    table.tags.create("first", 1)
    for number in range(6):
        table.append([{"a": number}])
    assert _versions(table) == [1, 6, 7, 8]


def test_without_an_age_young_versions_stay(tmp_path) -> None:
    table = _table(tmp_path / "t", interval="1")
    table.append([{"a": 1}])
    assert _versions(table) == [1, 2, 3]


@pytest.mark.parametrize(
    "settings",
    [{"interval": "soon"}, {"interval": "0"}, {"interval": "1", "older_than": "a fortnight"},
     {"interval": "1", "retain_versions": "-1"}],
)  # fmt: skip
def test_wrong_settings_are_logged_and_fail_no_commit(tmp_path, caplog, settings) -> None:
    with caplog.at_level(logging.WARNING, "lancetable"):
        table = _table(tmp_path / "t", **settings)
        table.append([{"a": 2}])
    assert table.count() == 2
    assert "automatic cleanup" in caplog.text
    assert "lance.auto_cleanup" in caplog.text or "not a duration" in caplog.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0s", timedelta(0)),
        ("14days", timedelta(days=14)),
        ("1h 30m", timedelta(minutes=90)),
        ("2w1d", timedelta(days=15)),
        ("1M", timedelta(days=30.44)),
        ("500ms", timedelta(milliseconds=500)),
        ("9999999999y", timedelta.max),
    ],
)
def test_durations(text, expected) -> None:
    assert duration(text) == expected


@pytest.mark.parametrize("text", ["", "5", "soon", "1 fortnight", "1d tomorrow", "-1d"])
def test_wrong_durations_are_refused(text) -> None:
    with pytest.raises(InputError, match="duration"):
        duration(text)


def test_the_options_follow_the_config() -> None:
    assert automatic_options({INTERVAL: "1"}).older_than == timedelta(days=14)
    assert automatic_options({RETAIN_VERSIONS: "5"}).keep_last == 5
    both = automatic_options({OLDER_THAN: "1d", RETAIN_VERSIONS: "2"})
    assert (both.older_than, both.keep_last) == (timedelta(days=1), 2)
