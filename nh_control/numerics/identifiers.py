"""Converts names to identifiers for Python, C and ROS parameters."""

from __future__ import annotations

import re
import unicodedata


def identifier(name: str) -> str:
    """A name in ASCII: letters lose their accents, other characters that an identifier cannot
    contain become "_", and "_" is inserted before an initial digit.
    """
    bare = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    plain = re.sub(r"[^A-Za-z0-9_]", "_", bare)
    return f"_{plain}" if not plain or plain[0].isdigit() else plain
