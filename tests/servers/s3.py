"""What all S3 servers of the tests have in common."""

from typing import Any

from tests.servers.places import Place

BUCKET = "bucket"


class S3Server:
    """A running server that speaks S3.

    Args:
        port: its port on the loopback address.
        key: the access key id.
        secret: the secret access key.
    """

    def __init__(self, port: int, *, key: str = "test", secret: str = "test") -> None:
        self.port = port
        self.endpoint = f"http://127.0.0.1:{port}"
        self.keys = {
            "aws_access_key_id": key,
            "aws_secret_access_key": secret,
            "aws_region": "us-east-1",
        }

    def client(self, service: str = "s3") -> Any:
        """Return a boto3 client."""
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.keys["aws_access_key_id"],
            aws_secret_access_key=self.keys["aws_secret_access_key"],
            region_name="us-east-1",
        )

    def place(self, bucket: str = BUCKET, *, endpoint: str | None = None) -> Place:
        """Return a bucket of the server, perhaps reached through a proxy."""
        options = {**self.keys, "aws_endpoint": endpoint or self.endpoint, "allow_http": "true"}
        return Place(f"s3://{bucket}", options, options)
