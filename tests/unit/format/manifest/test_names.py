"""File names, and paths that are not followed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError
from lancetable.format.manifest.model import DeletionFile, DeletionKind
from lancetable.format.manifest.names import (
    ManifestName,
    Scheme,
    checked_path,
    data_path,
    deletion_path,
    manifest_path,
    parse_manifest_name,
    transaction_path,
)


def parsed(path):
    return parse_manifest_name(path.rpartition("/")[2])


@given(st.integers(0, 10**19 - 1))
def test_both_schemes_come_back(version):
    for scheme in (Scheme.V1, Scheme.V2):
        assert parsed(manifest_path(version, scheme)) == ManifestName(version, scheme)


@given(st.integers(2**63, 2**64 - 1))
def test_detached_names_come_back(version):
    name = ManifestName(version, Scheme.DETACHED)
    assert parsed(manifest_path(version, Scheme.DETACHED)) == name


def test_known_names():
    assert manifest_path(1, Scheme.V2) == "_versions/18446744073709551614.manifest"
    assert manifest_path(10, Scheme.V1) == "_versions/10.manifest"


@pytest.mark.parametrize(
    "name",
    [
        *("1.manifest#1", ".tmp1.manifest", "1.manifest-0a1b", "d5.manifest", "x.manifest"),
        *("99999999999999999999.manifest", "-1.manifest", "manifest", "²3.manifest", "d.manifest"),
        *("000000000000000000001.manifest", "+1.manifest", " 1.manifest", "1_0.manifest"),
    ],
)
def test_names_that_are_no_manifest(name):
    assert parse_manifest_name(name) is None


@given(st.text(max_size=30))
def test_any_name_is_a_manifest_or_not(name):
    parse_manifest_name(name + ".manifest")


def test_derived_paths():
    file = DeletionFile(DeletionKind.BITMAP, 3, 2**63 + 1)
    assert deletion_path(7, file) == f"_deletions/7-3-{2**63 + 1}.bin"
    assert data_path("a.lance") == "data/a.lance"
    assert data_path("x/a..b.lance") == "data/x/a..b.lance"
    assert transaction_path("1-a.txn") == "_transactions/1-a.txn"


@pytest.mark.parametrize(
    "path",
    [
        *("", "/etc/passwd", "../x", "a/../../x", "a/..", "..", "C:/x", "C:\\x", "a\\b", "a\0b"),
        *("s3://bucket/x", "file:///x", "file:x", "~/x", "a/http://b"),
    ],
)
def test_paths_that_leave_their_folder(path):
    with pytest.raises(CorruptError, match="data file"):
        checked_path(path, "data file")
