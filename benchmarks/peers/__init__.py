"""The implementations that are measured, each behind the same adapter."""

from benchmarks.peers.base import Handle, Peer, load_peer, peer_names

__all__ = ["Handle", "Peer", "load_peer", "peer_names"]
