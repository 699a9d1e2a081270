"""Apply operations to manifests."""
