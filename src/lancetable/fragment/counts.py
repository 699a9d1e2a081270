"""Count the live rows of a fragment from its entry in the manifest."""

from lancetable.format.manifest.model import Fragment


def live_rows(fragment: Fragment) -> int | None:
    """Return the number of rows that are not deleted; None when the files must be asked."""
    rows = fragment.physical_rows
    deletion_file = fragment.deletion_file
    if not rows or deletion_file is None:
        return rows or None
    deleted = deletion_file.deleted_rows
    return rows - deleted if 0 < deleted <= rows else None
