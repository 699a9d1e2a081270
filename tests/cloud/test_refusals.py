"""What a store refuses ends in one sentence that says what to set, and in no half-made table."""

import json

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store.cloud.settings import Service, settle
from tests.servers.moto import Moto
from tests.servers.places import Place
from tests.servers.proxy import Proxy, proxy

ROWS = pa.table({"id": range(10)})
cloud = pytest.mark.cloud


def error(code: str) -> bytes:
    """Return an answer as S3 gives it."""
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()


@cloud
def test_a_bucket_that_is_not_there(s3: Place) -> None:
    with pytest.raises(lt.StoreError, match=r"no such bucket; check its name.*NoSuchBucket"):
        lt.open_table("s3://nothing/table", storage_options=s3.options)
    with pytest.raises(lt.StoreError, match="no such bucket"):
        lt.create_table("s3://nothing/table", ROWS, storage_options=s3.options)


@cloud
def test_a_container_that_is_not_there(azure: Place) -> None:
    with pytest.raises(lt.StoreError, match="no such container"):
        lt.open_table("az://nothing/table", storage_options=azure.options)
    wrong = azure.having(azure_storage_account_key="AAAA")
    with pytest.raises(lt.StoreError, match="azure_storage_account_key"):
        lt.create_table(wrong.fresh().uri, ROWS, storage_options=wrong.options)


@cloud
@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (403, "InvalidAccessKeyId", "set aws_access_key_id"),
        (403, "SignatureDoesNotMatch", "set aws_secret_access_key"),
        (400, "ExpiredToken", "credential provider"),
        (403, "RequestTimeTooSkewed", "clock"),
        (400, "AuthorizationHeaderMalformed", "set aws_region"),
        (301, "PermanentRedirect", "set aws_region"),
        (403, "AccessDenied", r"do not allow listing; grant s3:ListBucket"),
        (403, "Other", "do not allow listing"),
        (404, "XAdminUserNotFound", "set aws_access_key_id"),
        (404, "InvalidAccessKeyId", "set aws_access_key_id"),
        (404, "OddCode", r"answered 404, no \(OddCode\)"),
        (418, "Teapot", "answered 418"),
    ],
)
def test_what_the_service_says_is_explained(
    via: Place, between: Proxy, status: int, code: str, advice: str
) -> None:
    between.answer = lambda method, path: (status, error(code))
    with pytest.raises(lt.StoreError, match=advice) as caught:
        lt.open_table(via.uri, storage_options=via.options)
    assert caught.value.is_certain
    assert "\n" not in str(caught.value)


@cloud
def test_an_endpoint_that_ignores_conditions_gets_no_table(moto_server: Moto) -> None:
    # The condition is among what is signed, and moto checks no signatures.
    with proxy(moto_server.port) as between:
        between.drops_conditions = True
        place = moto_server.place(endpoint=between.endpoint).fresh()
        with pytest.raises(lt.UnsupportedError, match=r"ignores 'If-None-Match'.*manifest store"):
            lt.create_table(place.uri, ROWS, storage_options=place.options)
        assert list(place.open().list("")) == []


@cloud
def test_writing_without_permission_leaves_nothing(via: Place, between: Proxy) -> None:
    def refuse_puts(method: str, path: str) -> tuple[int, bytes] | None:
        return (403, error("AccessDenied")) if method == "PUT" else None

    between.answer = refuse_puts
    with pytest.raises(lt.StoreError, match="grant"):
        lt.create_table(via.uri, ROWS, storage_options=via.options)
    between.answer = lambda method, path: None
    assert list(via.open().list("")) == []


@cloud
def test_a_commit_without_permission_leaves_the_table_as_it_was(via: Place, between: Proxy) -> None:
    table = lt.create_table(via.uri, ROWS, storage_options=via.options)
    before = {entry.path for entry in via.open().list("")}

    def refuse_manifests(method: str, path: str) -> tuple[int, bytes] | None:
        is_commit = method == "PUT" and "_versions" in path
        return (403, error("AccessDenied")) if is_commit else None

    between.answer = refuse_manifests
    with pytest.raises(lt.StoreError, match="grant"):
        table.append(ROWS)
    between.answer = lambda method, path: None
    assert {entry.path for entry in via.open().list("")} == before


SAS = "sv=2021-08-06&ss=b&srt=sco&sp=rl&se={year}-01-01T00:00:00Z&sig=c2VjcmV0"


@cloud
def test_a_sas_token_that_is_refused(azure: Place) -> None:
    keyless = {name: value for name, value in azure.options.items() if "key" not in name}
    for year, told in (("2020", "expired at 2020-01-01T00:00:00Z"), ("2099", "sas_token")):
        options = {**keyless, "azure_storage_sas_token": SAS.format(year=year)}
        with pytest.raises(lt.StoreError, match=told) as caught:
            lt.open_table(azure.fresh().uri, storage_options=options)
        assert "c2VjcmV0" not in str(caught.value)


@cloud
def test_requests_without_a_signature_that_are_refused(s3: Place, gcs: Place) -> None:
    anonymous = s3.having(skip_signature="true")
    with pytest.raises(lt.StoreError, match="set credentials instead of skip_signature"):
        lt.open_table(anonymous.uri, storage_options=anonymous.options)
    endpoint = json.loads(gcs.options["google_service_account_key"])["gcs_base_url"]
    options = {"google_base_url": endpoint, "skip_signature": "true"}
    with pytest.raises(lt.StoreError, match="set credentials to write"):
        lt.create_table(gcs.fresh().uri, ROWS, storage_options=options)


def test_a_server_that_is_not_there() -> None:
    options = {"aws_endpoint": "http://127.0.0.1:9", "aws_access_key_id": "a", "max_retries": "0"}
    options["aws_secret_access_key"] = "b"
    with pytest.raises(lt.StoreError, match="cannot be reached; check the endpoint"):
        lt.open_table("s3://bucket/table", storage_options=options)


def test_options_that_mean_nothing_are_refused() -> None:
    with pytest.raises(lt.InputError, match="did you mean aws_access_key_id"):
        lt.open_table("s3://bucket/x", storage_options={"aws_acces_key_id": "a"})
    with pytest.raises(lt.InputError, match="'part_bytes' is 'many'"):
        lt.open_table("s3://bucket/x", storage_options={"part_bytes": "many"})
    with pytest.raises(lt.InputError, match="names no bucket"):
        lt.open_table("s3:///x")
    with pytest.raises(lt.UnsupportedError, match="unknown scheme ftp://"):
        lt.open_table("ftp://host/x")
    with pytest.raises(lt.InputError, match="cannot be used"):
        lt.open_table("s3://bucket/x", storage_options={"aws_server_side_encryption": "rot13"})


@pytest.mark.parametrize(
    ("service", "given", "meant"),
    [
        (Service.S3, {"AWS_ACCESS_KEY_ID": "a"}, {"access_key_id": "a"}),
        (Service.S3, {"key": "a", "secret": "b"}, {"access_key_id": "a", "secret_access_key": "b"}),
        (Service.S3, {"endpoint_url": "e", "region": "r"}, {"endpoint": "e", "region": "r"}),
        (Service.S3, {"azure_storage_account_key": "a"}, {}),
        (Service.AZURE, {"azure_storage_account_key": "a"}, {"account_key": "a"}),
        (
            Service.AZURE,
            {"AZURE_CLIENT_ID": "a", "sas_token": "b"},
            {"client_id": "a", "sas_key": "b"},
        ),
        (Service.GCS, {"google_service_account": "a"}, {"service_account": "a"}),
        (Service.GCS, {"token": "t"}, {"bearer_token": "t"}),
    ],
)
def test_names_of_other_libraries_are_understood(
    service: Service, given: dict[str, str], meant: dict[str, str]
) -> None:
    assert settle(service, given).config == meant
