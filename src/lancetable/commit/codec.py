"""Transactions from their messages."""

from google.protobuf.message import DecodeError

from lancetable.commit.transaction import Transaction
from lancetable.errors import CorruptError
from lancetable.format.proto import transaction_pb2


def decode_transaction(data: bytes | memoryview) -> Transaction:
    """Return the transaction of a message.

    Raises:
        CorruptError: the bytes are not such a message.
    """
    try:
        message = transaction_pb2.Transaction.FromString(data)
    except DecodeError:
        raise CorruptError("the transaction is not a valid message") from None
    name = message.WhichOneof("operation") or "unknown"
    return Transaction(
        message.read_version,
        message.uuid,
        "".join(word.capitalize() for word in name.split("_")),
        dict(message.transaction_properties),
    )
