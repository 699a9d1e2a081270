"""What pylance does not write; such tables prove nothing about a reader."""

WORDS = (
    "does not encode struct validity",
    "not supported",
    "not yet implemented",
    "Not supported",
    "Please file a bug report",
    "null_bit_buffer size too small",
    "should not be used for fixed-width",
    "Encountered corrupt file",
    "contains nulls not present in parent",
    "panicked with message",
)


def is_refusal(cause: BaseException) -> bool:
    """Say whether pylance declined, or broke down over, what it was given to write."""
    if type(cause).__name__ == "PanicException":
        return True
    return isinstance(cause, Exception) and any(words in str(cause) for words in WORDS)
