"""Every step of the frozen tables, done again by this library, gives the version stored."""

from datetime import UTC, datetime

import pytest

from lancetable.commit import list_versions, load
from lancetable.commit.apply.manifest import Context, State, apply
from lancetable.commit.codec.decode import decode_transaction
from lancetable.commit.codec.encode import encode_transaction
from lancetable.commit.transaction import Clone, Overwrite, Restore
from lancetable.errors import UnsupportedError
from lancetable.format.manifest import InlineSequence, Manifest, WriterVersion
from lancetable.format.manifest.codec import decode_manifest, encode_manifest
from lancetable.format.manifest.envelope import section
from lancetable.format.manifest.flags import Feature
from lancetable.format.manifest.indices.codec import decode_index_section, encode_index_section
from lancetable.format.manifest.rowids import decode_row_ids, decode_versions
from lancetable.format.schema import Schema
from lancetable.store import TableLocation
from tests.conftest import GOLDEN

TABLES = sorted(
    path.parent.relative_to(GOLDEN).as_posix()
    for path in GOLDEN.rglob("_versions")
    if "/file/" not in path.as_posix()
)
# What a rewrite adds to the index of moved rows is not part of its transaction.
REUSING = {("table/defer_remap.lance", 5), ("index/life_frag_reuse", 9)}


def steps():
    """Yield table and version of every step whose writer followed the rules of today."""
    for name in TABLES:
        location = TableLocation(str(GOLDEN / name))
        for info in list_versions(load(location), detail=True):
            writer = info.writer
            if writer and writer.library == "lance" and int(writer.version.split(".")[0]) >= 14:
                yield pytest.param(name, info.version, id=f"{name}@{info.version}")


STEPS = list(steps())


def spelled_out(fragment):
    """Return a fragment with numbers in place of their encodings."""
    rows = fragment.physical_rows

    def versions(stored):
        inline = isinstance(stored, InlineSequence)
        return decode_versions(stored.data, rows).tolist() if inline else stored

    ids = fragment.row_ids
    return fragment._replace(
        files=tuple(sorted(fragment.files)),
        row_ids=decode_row_ids(ids.data).tolist() if isinstance(ids, InlineSequence) else ids,
        created_at=versions(fragment.created_at),
        last_updated_at=versions(fragment.last_updated_at),
    )


def described(manifest, segments):
    return {
        "version": manifest.version,
        "fields": manifest.schema.fields,
        "metadata": dict(manifest.schema.metadata),
        "fragments": [spelled_out(fragment) for fragment in manifest.fragments],
        "flags": (manifest.reader_flags, manifest.writer_flags),
        "config": dict(manifest.config or {}),
        "table metadata": dict(manifest.table_metadata or {}),
        "bases": sorted(manifest.base_paths),
        "data format": manifest.data_format,
        "largest fragment": manifest.max_fragment_id,
        "next row": manifest.next_row_id,
        "branch": manifest.branch,
        "largest field": manifest.max_allocated_field_id,
        "indices": {
            one.uuid: (one.name, one.fields, one.dataset_version, one.fragment_ids, one.files)
            for one in segments
        },
    }


def before_the_first(made):
    """Return what the first version was made from: nothing but the choices of its creator."""
    stable = made.reader_flags & Feature.STABLE_ROW_IDS
    return Manifest(
        0,
        Schema(()),
        (),
        reader_flags=int(stable),
        data_format=made.data_format,
        max_allocated_field_id=made.max_allocated_field_id,
    )


def is_first(transaction, version):
    return isinstance(transaction.operation, Overwrite) and version == 1


@pytest.mark.parametrize(("name", "version"), STEPS)
def test_the_next_version(name, version):
    location = TableLocation(str(GOLDEN / name))
    made = load(location, version=version)
    transaction = made.transaction()
    assert transaction is not None
    if isinstance(transaction.operation, Clone) or (name, version) in REUSING:
        pytest.skip("not made from the version before")
    if any(field.dictionary for field in made.manifest.schema.walk()):
        pytest.skip("dictionaries of 0.1 tables are kept in the manifest")
    restored = None
    if isinstance(transaction.operation, Restore):
        old = load(location, version=transaction.operation.version)
        restored = State(old.manifest, tuple(old.indices()))
    if is_first(transaction, version):
        before, segments = before_the_first(made.manifest), []
    else:
        read = load(location, version=version - 1)
        before, segments = read.manifest, list(read.indices())
    context = Context(
        datetime.now(UTC), WriterVersion("me", "1"), indices=lambda: segments, restored=restored
    )
    state = apply(before, transaction.operation, context)
    found = described(state.manifest, segments if state.indices is None else state.indices)
    expected = described(made.manifest, made.indices())
    if name == "table/ext_types.lance":
        # The writer left the metadata of the schema out of the transaction.
        assert expected.pop("metadata") == {"schema_k": "schema_v"}
        del found["metadata"]
    assert found == expected


def test_most_steps_are_replayed():
    places = ((TableLocation(str(GOLDEN / step.values[0])), step.values[1]) for step in STEPS)
    made = (load(location, version=version).transaction() for location, version in places)
    assert {transaction.operation_name for transaction in made if transaction} >= {
        *("Append", "Clone", "CreateIndex", "DataReplacement", "Delete", "Merge", "Overwrite"),
        *("Project", "ReserveFragments", "Restore", "Rewrite", "Update", "UpdateConfig"),
    }


@pytest.mark.parametrize("name", TABLES)
def test_transactions_and_manifests_survive_being_written_again(name):
    location = TableLocation(str(GOLDEN / name))
    for info in list_versions(load(location)):
        stored = load(location, version=info.version)
        transaction = stored.transaction()
        if transaction is not None:
            assert decode_transaction(encode_transaction(transaction)) == transaction
        segments = list(stored.indices())
        assert decode_index_section(encode_index_section(segments)) == segments
        try:
            made = encode_manifest(
                stored.manifest, "p", index_section=encode_index_section(segments), transaction=b""
            )
        except UnsupportedError:
            assert any(field.dictionary for field in stored.manifest.schema.walk())
            continue
        read = decode_manifest(made.content, "p")
        assert described(read, segments) == described(stored.manifest, segments)
        assert described(made.manifest, segments) == described(stored.manifest, segments)
        assert read.index_section is not None
        assert decode_index_section(section(made.content, read.index_section, "i")) == segments
        assert (read.timestamp, read.writer) == (stored.manifest.timestamp, stored.manifest.writer)
