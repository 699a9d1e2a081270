"""A credential provider for tests: it notes in which process it was asked."""

import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

# A fixed place, as the processes of Spark do not share the environment of a test.
NOTES = Path(tempfile.gettempdir()) / "lancetable-test-credentials"


def short_lived():
    """Return credentials that are to be asked for again at once."""
    with NOTES.open("a") as notes:
        notes.write(f"{os.getpid()}\n")
    return {
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "expires_at": datetime.now(UTC) + timedelta(seconds=1),
    }
