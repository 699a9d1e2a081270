"""Credentials that do not last are asked for again; a provider that fails is named."""

import pickle
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store.cloud.credentials import Asked, named_provider
from lancetable.store.cloud.settings import Service
from tests.servers.moto import Moto
from tests.servers.places import Place

cloud = pytest.mark.cloud
ASKED: list[str] = []


def short_lived() -> dict[str, object]:
    """Return credentials that expire at once."""
    ASKED.append("short")
    soon = datetime.now(UTC) + timedelta(seconds=1)
    return {"aws_access_key_id": "test", "aws_secret_access_key": "test", "expires_at": soon}


def lasting() -> dict[str, object]:
    """Return credentials that last."""
    ASKED.append("lasting")
    return {"access_key_id": "test", "secret_access_key": "test", "session_token": "token"}


def broken() -> dict[str, object]:
    """Fail."""
    raise KeyError("the vault is closed")


def without_keys(place: Place) -> dict[str, str]:
    """Return the options of a place but for its keys."""
    secret = {"aws_access_key_id", "aws_secret_access_key"}
    return {name: value for name, value in place.options.items() if name not in secret}


@cloud
def test_credentials_are_asked_for_before_they_expire(s3: Place) -> None:
    ASKED.clear()
    options = without_keys(s3)
    table = lt.create_table(
        s3.uri, pa.table({"id": [1]}), storage_options=options, credentials=short_lived
    )
    time.sleep(0.2)
    table.append(pa.table({"id": [2]}))
    assert len(ASKED) >= 2
    ASKED.clear()
    # The client asks again when less than five minutes are left, but not ten times a second.
    time.sleep(0.2)
    again = pickle.loads(pickle.dumps(table))
    assert again.count() == 2
    again.append(pa.table({"id": [3]}))
    assert ASKED


@cloud
def test_credentials_that_last_are_asked_for_once(moto_server: Moto) -> None:
    # moto takes any session token; SeaweedFS only those that it gave out.
    s3 = moto_server.place().fresh()
    ASKED.clear()
    given: dict[str, Any] = {"storage_options": without_keys(s3), "credentials": lasting}
    table = lt.create_table(s3.uri, pa.table({"id": [1]}), **given)
    table.append(pa.table({"id": [2]}))
    assert lt.open_table(s3.uri, **given).count() == 2
    assert len(ASKED) == 1


@cloud
def test_a_provider_is_named_in_the_options(s3: Place) -> None:
    name = f"{__name__}:short_lived"
    options = {**without_keys(s3), "credential_provider": name}
    lt.create_table(s3.uri, pa.table({"id": [1]}), storage_options=options)
    assert lt.open_table(s3.uri, storage_options=options).count() == 1


@cloud
def test_a_provider_that_fails_is_named(s3: Place) -> None:
    with pytest.raises(lt.StoreError, match=r"credential provider failed: KeyError.*vault"):
        lt.open_table(s3.uri, storage_options=without_keys(s3), credentials=broken)


def test_providers_that_say_too_little() -> None:
    with pytest.raises(lt.InputError, match="did not return secret_access_key"):
        Asked(lambda: {"aws_access_key_id": "a"}, Service.S3)()
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    with pytest.raises(lt.InputError, match="time zone"):
        Asked(lambda: {"expires_at": naive}, Service.S3)()
    with pytest.raises(lt.InputError, match="module:function"):
        named_provider("nothing.here:at_all")
    said = Asked(lambda: {"azure_storage_sas_token": "t", "expires_at_millis": 0}, Service.AZURE)()
    assert said == {"sas_token": "t", "expires_at": datetime(1970, 1, 1, tzinfo=UTC)}
    assert Asked(lambda: {"google_bearer_token": "t"}, Service.GCS)() == {
        "token": "t",
        "expires_at": None,
    }
