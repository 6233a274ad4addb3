"""Messages of calls that must fail."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from evenhand import InputError


def complaint(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Return the message of the one-line InputError that the call must raise."""
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


def complains_of(facts: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
    """Return whether the message of a call that must fail has facts, given as a pattern."""
    return re.search(facts, complaint(call, *args, **kwargs)) is not None
