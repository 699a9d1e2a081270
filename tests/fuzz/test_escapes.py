"""A table from a stranger must not make us read elsewhere."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lancetable
from lancetable.errors import CorruptError, InputError, LanceTableError, RefNotFoundError
from lancetable.format.manifest.envelope import FOOTER, manifest_message, seal
from lancetable.format.proto import table_pb2
from tests.fixtures_catalog import GOLDEN

CANARY = "canary.lance"

ESCAPES = [
    "../canary.lance",
    "../../canary.lance",
    "a/../../../canary.lance",
    "..",
    "/CANARY",
    "//CANARY",
    "C:/canary.lance",
    "C:\\canary.lance",
    "..\\..\\canary.lance",
    "file:///CANARY",
    "file:CANARY",
    "https://example.org/canary.lance",
    "s3://bucket/canary.lance",
    "~/canary.lance",
    "canary.lance\0.lance",
    "\0",
    "",
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table beside a file that must not be read; the file is a good data file."""
    place = tmp_path / "t.lance"
    shutil.copytree(GOLDEN / "table" / "delete_arrow.lance", place)
    data = min((place / "data").glob("*.lance"))
    shutil.copyfile(data, tmp_path / CANARY)
    return place


def newest(table: Path) -> Path:
    return min((table / "_versions").glob("*.manifest"))


def change(table: Path, how: Callable[[table_pb2.Manifest], None]) -> None:
    path = newest(table)
    data = path.read_bytes()
    message = table_pb2.Manifest.FromString(bytes(manifest_message(data)))
    how(message)
    (position, *_) = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    path.write_bytes(seal(data[:position], message.SerializeToString()))


def spelled(escape: str, table: Path) -> str:
    return escape.replace("/CANARY", str(table.parent / CANARY)).replace(
        "file:CANARY", f"file:{table.parent / CANARY}"
    )


@pytest.mark.parametrize("escape", ESCAPES)
def test_data_files_outside_the_table_are_refused(table: Path, escape: str) -> None:
    path = spelled(escape, table)

    def point_out(manifest: table_pb2.Manifest) -> None:
        for fragment in manifest.fragments:
            fragment.files[0].path = path

    change(table, point_out)
    with pytest.raises(CorruptError, match="not followed"):
        lancetable.open_table(str(table)).scan().to_arrow()
    with pytest.raises(CorruptError, match="not followed"):
        lancetable.open_table(str(table)).take([0])


@pytest.mark.parametrize("escape", ESCAPES)
def test_data_files_outside_a_base_are_refused(table: Path, escape: str) -> None:
    path = spelled(escape, table)

    def point_out(manifest: table_pb2.Manifest) -> None:
        manifest.base_paths.add(id=1, path=str(table / "data"))
        for fragment in manifest.fragments:
            fragment.files[0].path = path
            fragment.files[0].base_id = 1

    change(table, point_out)
    with pytest.raises(CorruptError, match="not followed"):
        lancetable.open_table(str(table)).scan().to_arrow()


@pytest.mark.parametrize("escape", [each for each in ESCAPES if each])
def test_transaction_files_outside_the_table_are_not_read(table: Path, escape: str) -> None:
    path = spelled(escape, table)

    def point_out(manifest: table_pb2.Manifest) -> None:
        manifest.transaction_file = path
        manifest.ClearField("transaction_section")
        manifest.ClearField("current_transaction_section")

    change(table, point_out)
    opened = lancetable.open_table(str(table))
    with pytest.raises(CorruptError, match="not followed"):
        opened._snapshot.transaction()
    # A list of versions goes on without it.
    assert opened.versions()[-1].operation is None


@pytest.mark.parametrize("escape", ESCAPES)
def test_row_ids_outside_the_table_are_refused(table: Path, escape: str) -> None:
    path = spelled(escape, table)

    def point_out(manifest: table_pb2.Manifest) -> None:
        for fragment in manifest.fragments:
            fragment.external_row_ids.path = path
            fragment.external_row_ids.size = 8

    change(table, point_out)
    with pytest.raises(CorruptError, match="not followed"):
        lancetable.open_table(str(table)).scan(with_row_id=True).to_arrow()


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".", "", "a\0b", "/etc/passwd", "a\\b"])
def test_names_of_tags_and_branches_cannot_climb(table: Path, name: str) -> None:
    (table.parent / "x.json").write_text('{"version": 1}')
    for wish in ({"tag": name}, {"branch": name}):
        with pytest.raises((InputError, RefNotFoundError)):
            lancetable.open_table(str(table), **wish)  # type: ignore[arg-type]


@pytest.mark.parametrize("branch", ["../../t.lance", "..", "/tmp", "a/../../..", "a\0", "C:\\x"])
def test_a_tag_on_a_branch_that_climbs_is_refused(table: Path, branch: str) -> None:
    tags = table / "_refs" / "tags"
    tags.mkdir(parents=True)
    (tags / "bad.json").write_text(json.dumps({"version": 1, "branch": branch}))
    with pytest.raises(CorruptError, match="branch"):
        lancetable.open_table(str(table), tag="bad")


@pytest.mark.parametrize("escape", ["../up", "..", "a/../..", "relative", "C:x", ""])
def test_bases_that_are_not_absolute_are_refused(table: Path, escape: str) -> None:
    def point_out(manifest: table_pb2.Manifest) -> None:
        manifest.base_paths.add(id=1, path=escape)
        for fragment in manifest.fragments:
            fragment.files[0].base_id = 1

    change(table, point_out)
    with pytest.raises(LanceTableError):
        lancetable.open_table(str(table)).scan().to_arrow()


def test_the_canary_would_have_been_readable(table: Path) -> None:
    """The tests above mean something only if what they point at can be read."""

    def move(manifest: table_pb2.Manifest) -> None:
        del manifest.fragments[1:]
        manifest.fragments[0].files[0].path = CANARY
        manifest.fragments[0].ClearField("deletion_file")

    change(table, move)
    shutil.copyfile(table.parent / CANARY, table / "data" / CANARY)
    assert lancetable.open_table(str(table)).scan().to_arrow().num_rows > 0
