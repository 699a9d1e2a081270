"""Steps of the commit loop: find newer versions, rebase, draft the next manifest, pause."""
