"""The keys of the JSON of audits and watches, from types of rows and from a JSON Schema."""

from __future__ import annotations

import importlib
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class RowTypes(SphinxDirective):
    """Each type of a JSON Schema, as a module describes it, with the kind of each of its keys."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(*self.arguments)
        types = module.audit_schema()["$defs"]
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


class SchemaKeys(SphinxDirective):
    """The types of the JSON Schema that a function of a module returns, with all keys."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        module, function = self.arguments
        schema = getattr(importlib.import_module(module), function)()
        lines: list[str] = []
        for name, one in {"watch": schema, **schema["$defs"]}.items():
            if "properties" in one:
                lines += [f".. rubric:: {name}", "", one.get("description", ""), ""]
                lines += [_line(key, value) for key, value in one["properties"].items()]
                lines += [""]
        lines += [".. rubric:: Kinds of values", ""]
        lines += [
            _line(name, one) for name, one in schema["$defs"].items() if "properties" not in one
        ]
        return self.parse_text_to_nodes(StringList(lines, source=module))


def _line(key: str, one: dict[str, Any]) -> str:
    """Return a key with its kind and its description, as an item of a list."""
    described = one.get("description", one.get("items", {}).get("description", ""))
    return f"- ``{key}`` ({_kind(one)}){': ' if described else ''}{described}"


def _kind(one: dict[str, Any]) -> str:
    """Return the kind of a value in words."""
    kinds = one.get("type", "any")
    if "$ref" in one:
        return str(one["$ref"]).rpartition("/")[2]
    if "const" in one or "enum" in one:
        values = one.get("enum", [one.get("const")])
        return " or ".join("null" if value is None else f'"{value}"' for value in values)
    if kinds == "array":
        return f"list of {_kind(one['items'])}" if one.get("items") else "list"
    # one of several: described each, or a list of types
    several = one.get("anyOf") or one.get("oneOf")
    if isinstance(kinds, list):
        several = [{**one, "type": kind} for kind in kinds]
    return " or ".join(map(_kind, several)) if several else str(kinds)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("row-types", RowTypes)
    app.add_directive("schema-keys", SchemaKeys)
    return {"parallel_read_safe": True}
