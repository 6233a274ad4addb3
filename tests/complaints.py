"""Messages of calls that must fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evenhand import InputError


def refused(facts: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> str:
    """Return the message of the one-line InputError that a call raises; it matches a pattern."""
    with pytest.raises(InputError, match=facts) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


def complaint(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> str:
    """Return the message of the one-line InputError that a call raises."""
    return refused(".", call, *args, **kwargs)
