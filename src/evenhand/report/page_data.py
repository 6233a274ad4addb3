"""Data embedded in a page: the values that it shows, and their hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.report.records import without_nan


@dataclass(frozen=True)
class PageData:
    r"""Text of the JSON that a page embeds.

    Examples
    --------
    >>> PageData.of({"name": "a <b>", "rows": [1]}).text
    '{"name":"a \\u003cb>"}'
    """

    text: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> PageData:
        """Return the data of a page that shows some values.

        Keys are sorted, there are no blanks, and characters beyond ASCII are escaped, so that equal
        values have equal texts. The values of single rows are left out.
        """
        shown = {key: value for key, value in values.items() if key != "rows"}
        text = json.dumps(without_nan(shown), sort_keys=True, separators=(",", ":"))
        # an end tag in a text would end the element that contains the data
        return cls(text.replace("<", "\\u003c"))

    @property
    def sha256(self) -> str:
        """Hash of the text as UTF-8."""
        return hashlib.sha256(self.text.encode()).hexdigest()
