"""Object stores that tests start for themselves, on this machine only."""
