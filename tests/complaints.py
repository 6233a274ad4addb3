"""Messages of calls that must fail."""

import pytest

from evenhand import InputError


def refused(facts, call, /, *args, **kwargs):
    """Return the message of the one-line InputError that a call raises; it matches a pattern."""
    with pytest.raises(InputError, match=facts) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


def complaint(call, /, *args, **kwargs):
    """Return the message of the one-line InputError that a call raises."""
    return refused(".", call, *args, **kwargs)
