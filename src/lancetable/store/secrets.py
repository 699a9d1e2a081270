"""Remove secrets from text that is shown to people: addresses, messages and log lines."""

import re

HIDDEN = "***"
MOST_CHARACTERS = 300
"""Longest part of a message that comes from a server or a client library."""

# Order matters: a header may hold what looks like a query parameter.
_PATTERNS = (
    # user:password@host; a container before '@' has no colon, and a port is followed by a path.
    (
        re.compile(r"(://)[^/\s:@]*:(?!\d{1,5}(?:[/?#\s\"']|$))[^\s@]*@"),
        rf"\1{HIDDEN}@",
    ),
    (re.compile(r"(?i)\b(bearer|basic|sharedkey)\s+[\w.:~+/=-]{16,}"), rf"\1 {HIDDEN}"),
    (
        re.compile(
            r"(?i)(?<![a-z0-9])((?:x-amz-|x-goog-)?(?:sig|signature|credential|security-token|"
            r"session[-_]token|access[-_]?token|sas[-_]?token|account[-_]?key|secret[-_]access[-_]key|"
            r"client[-_]secret|password)\s*[=:]\s*)(?!\*\*\*)[^&;\s\"'<>]+"
        ),
        rf"\1{HIDDEN}",
    ),
)


def hide_secrets(text: str) -> str:
    """Return the text with passwords, signatures, keys and tokens replaced by ``***``."""
    for pattern, shown in _PATTERNS:
        text = pattern.sub(shown, text)
    return text


def quoted(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return external text as one short line without secrets, for use in a message."""
    # Truncate first: a secret that is cut off is still recognised by its beginning.
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * most]).split())
    line = hide_secrets(line)
    return line if len(line) <= most else f"{line[: most - 1]}…"
