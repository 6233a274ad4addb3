"""The types of the rows of an audit, whose docstrings describe its JSON."""

from __future__ import annotations

import importlib
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class RowTypes(SphinxDirective):
    """Each type of a JSON Schema, as a module describes it, with the kind of each of its keys."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        room, module = map(importlib.import_module, self.arguments)
        types = room.audit_schema()["$defs"]
        lines: list[str] = []
        for name in types:
            if "properties" in types[name]:
                lines += [f".. autoclass:: {module.__name__}.{name}()", "   :no-index:", ""]
                lines += [f"   {self._keys(types[name])}", ""]
        return self.parse_text_to_nodes(StringList(lines, source=module.__name__))

    def _keys(self, described: dict[str, Any]) -> str:
        """Return the keys with their kinds, in a line."""
        pairs = described["properties"].items()
        return "Keys: " + ", ".join(f"``{key}`` ({_kind(one)})" for key, one in pairs) + "."


def _kind(one: dict[str, Any]) -> str:
    """Return the kind of a value in words."""
    if "anyOf" in one:
        return " or ".join(map(_kind, one["anyOf"]))
    if "$ref" in one:
        return str(one["$ref"]).rpartition("/")[2]
    if one.get("type") == "array":
        return f"list of {_kind(one['items'])}" if one.get("items") else "list"
    if "enum" in one:
        return " or ".join(f'"{value}"' for value in one["enum"])
    return str(one.get("type", "any"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("row-types", RowTypes)
    return {"parallel_read_safe": True}
