"""Before a table is created, the endpoint is tried: it must honour conditional requests."""

from datetime import timedelta

import pyarrow as pa
import pytest

import lancetable as lt
from tests.servers.azure import azure_blobs
from tests.servers.places import Place
from tests.servers.proxy import Proxy

pytestmark = pytest.mark.cloud
ROWS = pa.table({"id": range(3)})
DENIED = (403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")


def is_delete(method: str, path: str) -> bool:
    """Say whether a request removes an object."""
    return method == "DELETE" or "comp=batch" in path


def test_a_google_endpoint_that_ignores_conditions_gets_no_table(
    hurt: tuple[Place, Proxy],
) -> None:
    place, between = hurt
    if not place.uri.startswith("gs:"):
        pytest.skip("S3 and Azure sign their conditions, so a proxy cannot drop them; see below")
    between.drops_conditions = True
    with pytest.raises(lt.UnsupportedError, match=r"ignores.*manifest store"):
        lt.create_table(place.uri, ROWS, storage_options=place.options)
    assert list(place.open().list("")) == []


def test_an_azure_endpoint_that_ignores_conditions_gets_no_table() -> None:
    with azure_blobs(honours_conditions=False) as container:
        place = container.fresh()
        for _ in range(2):
            with pytest.raises(lt.UnsupportedError, match=r"ignores 'If-None-Match'.*manifest st"):
                lt.create_table(place.uri, ROWS, storage_options=place.options)
            assert list(place.open().list("")) == []


def test_an_azure_endpoint_that_honours_conditions_gets_a_table() -> None:
    with azure_blobs(honours_conditions=True) as container:
        place = container.fresh()
        table = lt.create_table(place.uri, ROWS, storage_options=place.options)
        table.append(ROWS)
        assert lt.open_table(place.uri, storage_options=place.options).count() == 6
        assert not [entry.path for entry in place.open().list("") if "probe" in entry.path]


def test_a_table_is_created_without_permission_to_delete(hurt: tuple[Place, Proxy]) -> None:
    """The object of the probe stays; readers do not mind, and a cleanup removes it."""
    place, between = hurt
    between.answer = lambda method, path: DENIED if is_delete(method, path) else None
    table = lt.create_table(place.uri, ROWS, storage_options=place.options)
    store = place.open()
    probes = [entry.path for entry in store.list("") if "probe" in entry.path]
    assert len(probes) == 1
    with pytest.raises(lt.StoreError, match=r"do not allow deleting; grant \S*[dD]elete"):
        store.delete(probes[0])
    table.append(ROWS)
    assert lt.open_table(place.uri, storage_options=place.options).count() == 6
    between.answer = lambda method, path: None
    table.maintenance.cleanup(older_than=timedelta(0), unverified_after=timedelta(0))
    assert not store.exists(probes[0])
    assert lt.open_table(place.uri, storage_options=place.options).count() == 6
