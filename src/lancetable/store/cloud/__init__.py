"""Object stores, reached through obstore: addresses, settings, clients, requests."""
