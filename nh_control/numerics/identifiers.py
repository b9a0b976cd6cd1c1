"""Names of parts as identifiers of Python and C, and as names of ROS parameters."""

from __future__ import annotations

import re
import unicodedata


def identifier(name: str) -> str:
    """A name in ASCII: letters lose their accents, other characters that no identifier may have
    become "_", and "_" comes before a digit at the start.
    """
    bare = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    plain = re.sub(r"[^A-Za-z0-9_]", "_", bare)
    return f"_{plain}" if not plain or plain[0].isdigit() else plain
