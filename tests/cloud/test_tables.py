"""Tables on the servers: written and read by both libraries."""

import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

import lancetable as lt
from tests.servers.places import Place

pytestmark = pytest.mark.cloud
ROWS = pa.table({"id": range(1000), "name": [f"row {n}" for n in range(1000)]})
MORE = pa.table({"id": range(1000, 1010), "name": ["more"] * 10})


def test_a_table_lives_there(remote: Place) -> None:
    table = lt.create_table(remote.uri, ROWS, storage_options=remote.options)
    table.append(MORE)
    table.delete("id < 5")
    table.update({"name": "'new'"}, where="id = 7")
    found = lt.open_table(remote.uri, storage_options=remote.options)
    assert found.version == 4
    assert found.count() == 1005
    assert found.take([0, 2, 1004], columns=["id"]).column("id").to_pylist() == [5, 8, 7]
    old = lt.open_table(remote.uri, version=1, storage_options=remote.options)
    assert old.scan().to_arrow().equals(ROWS)
    with pytest.raises(lt.ExistsError):
        lt.create_table(remote.uri, ROWS, storage_options=remote.options)


def test_a_handle_can_be_sent_elsewhere(remote: Place) -> None:
    table = lt.create_table(remote.uri, ROWS, storage_options=remote.options)
    there = pickle.loads(pickle.dumps(table))
    assert there.count() == 1000
    there.append(MORE)
    assert table.refresh().count() == 1010


@pytest.mark.oracle
def test_both_libraries_write_one_table(remote: Place) -> None:
    import lance

    lt.create_table(remote.uri, ROWS, storage_options=remote.options)
    theirs = lance.dataset(remote.uri, storage_options=remote.pylance)
    assert theirs.to_table().equals(ROWS)
    theirs = lance.write_dataset(MORE, remote.uri, mode="append", storage_options=remote.pylance)
    table = lt.open_table(remote.uri, storage_options=remote.options)
    assert table.version == 2
    table.delete("id = 1001")
    theirs = lance.dataset(remote.uri, storage_options=remote.pylance)
    assert theirs.count_rows() == 1009
    assert theirs.to_table().equals(table.scan().to_arrow())


@pytest.mark.oracle
def test_a_table_that_pylance_made(remote: Place) -> None:
    import lance

    lance.write_dataset(ROWS, remote.uri, storage_options=remote.pylance)
    table = lt.open_table(remote.uri, storage_options=remote.options)
    assert table.scan().to_arrow().equals(ROWS)
    table.append(MORE)
    assert lance.dataset(remote.uri, storage_options=remote.pylance).count_rows() == 1010


def test_tables_in_memory_are_shared_by_address() -> None:
    lt.create_table("memory://shared/a", ROWS)
    assert lt.open_table("memory://shared/a").count() == 1000
    with pytest.raises(lt.TableNotFoundError):
        lt.open_table("memory://shared/b")


def test_a_web_server_is_read(moto_server) -> None:
    place = moto_server.place().fresh()
    table = lt.create_table(place.uri, ROWS, storage_options=place.options)
    table.append(MORE)
    client, folder = moto_server.client("s3"), place.uri.partition("://bucket/")[2]
    place.open().put("_versions/latest_version_hint.json", b"")
    for entry in place.open().list(""):
        key = f"{folder}/{entry.path}"
        client.put_object_acl(Bucket="bucket", Key=key, ACL="public-read")
    address = f"{moto_server.endpoint}/bucket/{folder}"
    assert lt.open_table(address, version=1).scan().to_arrow().equals(ROWS)
    with pytest.raises(lt.UnsupportedError, match="cannot be listed"):
        lt.open_table(address)
    hint = {"Key": f"{folder}/_versions/latest_version_hint.json", "Body": b'{"version":1}'}
    client.put_object(Bucket="bucket", ACL="public-read", **hint)
    found = lt.open_table(address)
    assert found.count() == 1010
    with pytest.raises(lt.UnsupportedError, match="read only"):
        found.append(MORE)


def test_a_table_that_was_replaced_behind_our_back(s3: Place) -> None:
    """The same names with other contents: what was read before must not be shown again."""
    lt.create_table(s3.uri, ROWS, storage_options=s3.options)
    assert lt.open_table(s3.uri, storage_options=s3.options).count() == 1000
    store = s3.open()
    for entry in list(store.list("")):
        store.delete(entry.path)
    other = s3.having(user_agent="somebody else")
    lt.create_table(other.uri, MORE, storage_options=other.options)
    assert lt.open_table(s3.uri, storage_options=s3.options).scan().to_arrow().equals(MORE)


def test_a_forked_process_is_told(s3: Place) -> None:
    program = (
        "import os, sys, warnings, lancetable as lt\n"
        "warnings.simplefilter('ignore')\n"
        f"given = dict(uri={s3.uri!r}, storage_options={s3.options!r})\n"
        "table = lt.create_table(data={'id': [1]}, **given)\n"
        "child = os.fork()\n"
        "if child:\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "for action in (lambda: lt.open_table(**given), lambda: table.append({'id': [2]})):\n"
        "    try:\n"
        "        action()\n"
        "    except lt.UnsupportedError as error:\n"
        "        assert 'spawn' in str(error)\n"
        "    else:\n"
        "        os._exit(3)\n"
        "os._exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == 7
