"""What errors say, to compare tables of refusals with stored texts."""

import re

import pytest

ROUNDED = re.compile(r"-?\d\.?\d*e-(?:0[89]|[1-9]\d)|-?\d+\.\d{7,}(?:e[-+]\d+)?|\S+\.cpp:\d+: ")


def refusal(call, errors=(ValueError, TypeError)) -> str:
    """The message of the error that a call raises, with # for numbers that round-off changes."""
    with pytest.raises(errors) as caught:
        call()
    return ROUNDED.sub("#", str(caught.value))


def said(cases, call=lambda make: make(), error=ValueError) -> str:
    """The messages of the errors that `call` raises for the cases, a line each with its name."""
    named = cases.items() if isinstance(cases, dict) else enumerate(cases)
    return "\n".join(f"{name}: {refusal(lambda: call(case), error)}" for name, case in named)
