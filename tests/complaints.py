"""Messages of calls that must fail."""

from __future__ import annotations

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


def refused(facts: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Check that a call raises an InputError of one line that has facts, given as a pattern."""
    with pytest.raises(InputError, match=facts) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value)
