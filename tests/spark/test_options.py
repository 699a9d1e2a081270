"""Options: any case, typed once, and none that silently does nothing."""

import pytest

from lancetable.errors import InputError
from lancetable.spark.options import NAMES, Vectors, parse_options


def test_names_ignore_case_and_values_are_typed():
    parsed = parse_options(
        {
            "PATH": "t",
            "version": "3",
            "withrowid": "TRUE",
            "vectors": "Binary",
            "columns": "a, b.c,`x,y`",
            "storage.region": "eu",
            "MAXROWSPERFILE": "7",
            "types": "v=float32[2], m=map<_,uint8>",
            "maxVersionsPerTrigger": "2",
        }
    )
    assert parsed.place.location.uri == "t"
    assert parsed.place.location.options == {"region": "eu"}
    assert parsed.place.version == 3
    assert parsed.read.with_row_id is True
    assert parsed.read.vectors is Vectors.BINARY
    assert parsed.read.columns == ("a", "b.c", "`x,y`")
    assert parsed.sink.max_rows_per_file == 7
    assert parsed.sink.types == {"v": "float32[2]", "m": "map<_,uint8>"}
    assert parsed.stream.max_versions_per_trigger == 2


@pytest.mark.parametrize("name", NAMES[1:-1])
def test_every_name_reaches_a_field(name):
    plain = parse_options({"path": "t"})
    for text in (
        "1",
        "2",
        "a=int8",
        "binary",
        "bytes",
        "truncate",
        "allow",
        "never",
        "skip",
        "true",
        "false",
        "2026-01-31T12:00:00Z",
    ):
        try:
            given = parse_options({"path": "t", name.upper(): text})
        except InputError as error:
            assert name in str(error)
        else:
            if given != plain:
                return
    raise AssertionError(f"{name} changes nothing")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "'path' is missing"),
        ({"path": "t", "colums": "a"}, "did you mean columns"),
        ({"path": "t", "zzzzzz": "a"}, "known: path, version"),
        ({"path": "t", "version": "new"}, "whole number"),
        ({"path": "t", "batchRows": "0"}, "from 1"),
        ({"path": "t", "withRowId": "perhaps"}, "true or false"),
        ({"path": "t", "vectors": "list"}, "array, binary"),
        ({"path": "t", "types": "v"}, "column=type"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    with pytest.raises(InputError, match=message):
        parse_options(options)
