"""An address has one reading: it names one folder of one bucket, or it is refused."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store import TableLocation
from lancetable.store.cloud.address import parse_address, written_address
from lancetable.store.cloud.objects import ObjectStore


@pytest.mark.parametrize(
    ("folder", "meant"),
    [
        ("a%20b", "a b"),
        ("a b", "a b"),
        ("x%2Fy", "x/y"),
        ("x%25z", "x%z"),
        ("x%2520z", "x%20z"),
        ("pct%zz", "pct%zz"),
        ("tr%20", "tr "),
        ("e%C3%A9", "eé"),
        ("é", "é"),
        ("plus+p", "plus+p"),
        ("a%23b", "a#b"),
        ("a%3Fb", "a?b"),
        ("trailing/", "trailing"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "memory", "https"])
def test_escapes_are_decoded_once(scheme: str, folder: str, meant: str) -> None:
    uri = f"{scheme}://bucket/{folder}"
    address = parse_address(uri)
    assert address.folder == meant
    written = written_address(uri, address)
    assert parse_address(written) == address
    assert written_address(written, address) == written


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/a\\b",
        "s3://bucket/a%5Cb",
        "s3://bucket/a?b",
        "s3://bucket/a#b",
        "s3://bucket/a ",
        " s3://bucket/a",
        "s3://bucket/a\nb",
        "s3://bucket/a\0b",
        "s3://bucket/a%00b",
        "s3://bucket/a%FFb",
        "s3://bucket/a\ud800",
        "s3://bucket/a//b",
        "s3://bucket/a/../b",
        "s3://bucket/%2e%2e/b",
        "s3://buc ket/a",
        "s3://bücket/a",
        "s3://[::1]/a",
        "gs://a%20b/c",
        "az://a\0b/c",
        "https://",
        "https://[::1/a",
        "https://host/a?sig=secret",
        "file:///a\\b",
        "file:///a#b",
        "file:///a?b",
        "file:///a ",
        "file://[::1]/a",
        "file://[::1/a",
        "file://host/a",
        "file:///a%00b",
        "a\0b",
        "a\ud800",
    ],
)
def test_what_has_several_readings_is_refused(uri: str) -> None:
    with pytest.raises(lt.InputError) as caught:
        TableLocation(uri).open()
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    str(caught.value).encode()


def test_local_paths_are_taken_as_they_are(tmp_path: Path) -> None:
    for name in ("a%20b", "a#b", "a?b", "a\\b", "trailing "):
        lt.create_table(f"{tmp_path}/{name}", {"a": [1]})
        assert (tmp_path / name / "_versions").is_dir()
    lt.create_table(f"file://{tmp_path}/in%20file", {"a": [1]})
    assert (tmp_path / "in file" / "_versions").is_dir()
    strange = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    lt.create_table(strange, {"a": [1]})
    assert lt.open_table(strange).count() == 1


def test_one_folder_is_one_table_however_it_is_spelt() -> None:
    table = lt.create_table("memory://spelling/a%20b", pa.table({"a": [1]}))
    again = lt.open_table("memory://spelling/a b")
    again.append({"a": [2]})
    assert table.refresh().count() == 2
    stores = [TableLocation(f"memory://spelling/{name}").open() for name in ("a%20b", "a b")]
    assert stores[0].root == stores[1].root


def test_a_child_of_an_escaped_folder() -> None:
    child = TableLocation("memory://spelling/a%20b").child("tree/50%25").open()
    assert isinstance(child, ObjectStore)
    assert child.folder == "a b/tree/50%25"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"aws_endpoint": "127.0.0.1:9000"}, "with its scheme"),
        ({"aws_endpoint": "localhost"}, "with its scheme"),
        ({"aws_endpoint": "http://ho st"}, "is not a valid address"),
        ({"aws_endpoint": "http://[::1"}, "is not a valid address"),
        ({"aws_endpoint": "ftp://host"}, "with its scheme"),
        ({"aws_endpoint": "http://host", "allow_http": "false"}, "set allow_http=true"),
        (
            {"aws_endpoint": "https://host", "aws_virtual_hosted_style_request": "true"},
            "must begin with the bucket",
        ),
        ({"aws_endpoint": "https://user:secret@ho st"}, "is not a valid address"),
    ],
)
def test_endpoints_that_cannot_work_are_refused_at_once(options: dict[str, str], told: str) -> None:
    with pytest.raises(lt.InputError, match=told) as caught:
        lt.open_table("s3://bucket/table", storage_options=options)
    assert "secret" not in str(caught.value)


def test_endpoints_that_can_work() -> None:
    for endpoint in ("http://[::1]:9000", "https://host/base", "http://user:pw@host:1"):
        ObjectStore("s3://bucket/table", {"aws_endpoint": endpoint})
    hosted = {"aws_endpoint": "https://bucket.host", "aws_virtual_hosted_style_request": "true"}
    ObjectStore("s3://bucket/table", hosted)


def test_an_endpoint_of_the_environment_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    with pytest.raises(lt.InputError, match="with its scheme"):
        ObjectStore("s3://bucket/table", {})
