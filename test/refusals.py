"""What is said of input that is refused, as one text that can be stored."""

import pytest


def said(cases, call=lambda make: make(), error=ValueError):
    """The messages of the errors that `call` raises for the cases, by their names."""
    lines = []
    for name, case in cases.items() if isinstance(cases, dict) else enumerate(cases):
        with pytest.raises(error) as refused:
            call(case)
        lines.append(f"{name}: {refused.value}")
    return "\n".join(lines)
