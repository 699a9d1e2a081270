"""What a scan may be asked for."""

import pyarrow.compute as pc
import pytest

from lancetable.errors import ExpressionError, InputError
from lancetable.expression import parse
from lancetable.scan.request import (
    ScanOptions,
    ScanRequest,
    parse_columns,
    parse_where,
    scan_options,
)


def test_names_and_expressions_are_told_apart():
    assert parse_columns(None).columns is None
    assert parse_columns(["a", "b.c"]).columns == ("a", "b.c")
    assert dict(parse_columns({"z": "a + 1"}).expressions or ()) == {"z": parse("a + 1")}


@pytest.mark.parametrize(
    ("columns", "words"),
    [("a", "list of names"), (["a", "a"], "asked for twice"), ([1], "must be names")],
)
def test_unusable_columns(columns, words):
    with pytest.raises(InputError, match=words):
        parse_columns(columns)


def test_a_predicate_may_be_sql_or_arrow_or_a_tree():
    tree = parse("a > 1")

    assert parse_where("a > 1") == tree
    assert parse_where(tree) is tree
    assert parse_where(pc.field("a") > 1) is not None
    assert parse_where(None) is None


def test_a_predicate_of_another_kind_is_refused():
    with pytest.raises(InputError, match="SQL text or an Arrow expression"):
        parse_where(3)
    with pytest.raises(ExpressionError):
        parse_where("a >")


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"offset": -2}, {"blobs": "files"}])
def test_requests_are_checked(wrong):
    with pytest.raises(InputError):
        ScanRequest(**wrong)


def test_options_are_checked():
    assert scan_options({}) == ScanOptions()
    assert scan_options({"threads": 1}).threads == 1
    with pytest.raises(InputError, match="no option 'thread'"):
        scan_options({"thread": 1})
    with pytest.raises(InputError, match="give a whole number from 1"):
        scan_options({"batch_rows": 0})
