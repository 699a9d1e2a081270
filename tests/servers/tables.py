"""DynamoDB tables for external manifest stores."""

import uuid

from tests.servers.moto import Moto
from tests.servers.places import Place


def dynamo_table(server: Moto, *, range_key: str = "version") -> str:
    """Make a table with the keys that upstream expects, and return its name."""
    name = f"manifests-{uuid.uuid4().hex[:8]}"
    server.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "base_uri", "KeyType": "HASH"},
            {"AttributeName": range_key, "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "base_uri", "AttributeType": "S"},
            {"AttributeName": range_key, "AttributeType": "N"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


def recorded_place(server: Moto, bucket: Place | None = None) -> Place:
    """Return a fresh folder whose versions are recorded in a fresh DynamoDB table.

    Args:
        server: the DynamoDB server.
        bucket: where the folder is; a bucket of the same server by default.
    """
    place = (bucket or server.place()).fresh()
    uri = f"{place.uri.replace('s3://', 's3+ddb://')}?ddbTableName={dynamo_table(server)}"
    dynamodb = {"dynamodb_endpoint": server.endpoint}
    return Place(uri, {**place.options, **dynamodb}, {**place.pylance, **dynamodb})
