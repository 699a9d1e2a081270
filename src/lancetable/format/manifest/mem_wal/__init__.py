"""The write-ahead log: its record in the manifest and the manifests of its shards."""
