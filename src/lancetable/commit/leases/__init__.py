"""Leases, which protect versions and files in use from a cleanup."""

from lancetable.commit.leases.hold import Hold, extend_lease, reading, writing
from lancetable.commit.leases.records import (
    Lease,
    active_leases,
    lease_seconds,
    leases_of,
    store_time,
)

__all__ = [
    "Hold",
    "Lease",
    "active_leases",
    "extend_lease",
    "lease_seconds",
    "leases_of",
    "reading",
    "store_time",
    "writing",
]
