"""Reference pages that are made from the code.

What each room exports, and what each command takes.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.autosummary import Autosummary
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import evenhand

logger = logging.getLogger(__name__)

PACKAGE = "evenhand"
METHOD = re.compile(r"\(method: ([^()]+)\)")
OUTCOMES = re.compile(r"\(outcomes: [^()]+\)")


def is_room(module: str, name: str) -> bool:
    """Whether a module exports another module by this name."""
    return inspect.ismodule(getattr(importlib.import_module(module), name))


def pages() -> list[str]:
    """Return the modules that have a page: the package and its public rooms."""
    names = evenhand.__all__
    return [PACKAGE, *(f"{PACKAGE}.{one}" for one in names if is_room(PACKAGE, one))]


def home_of(module: str, name: str) -> str:
    """Return the page on which a name is described.

    The package's, if it exports the same object.
    """
    value = getattr(importlib.import_module(module), name)
    is_shared = name in evenhand.__all__ and getattr(evenhand, name) is value
    return f"{PACKAGE}.{name}" if is_shared else f"{module}.{name}"


class GalleryOrder:
    """Order of the gallery: audit, repair and proof."""

    ORDER = (
        *(
            "audit",
            "foreign_forecasts",
            "worst_group",
            "repair_by_group",
            "counts",
            "events",
            "times",
            "randomize",
            "price_of_proof",
        ),
        *("paic_network", "watch", "decide"),
    )

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> int:
        """Return the place of a script."""
        return self.ORDER.index(filename.removeprefix("plot_").removesuffix(".py"))

    def __repr__(self) -> str:
        return "<GalleryOrder>"


def described(module: str) -> list[tuple[str, str]]:
    """Return each class and function that a module exports, with the page that describes it.

    Names of pages differ by more than case: `evenhand.Audit` is not `evenhand.audit`.
    """
    found = []
    for name in sorted(importlib.import_module(module).__all__, key=str.lower):
        value, home = getattr(importlib.import_module(module), name), home_of(module, name)
        # constants are described on the page of the module
        if inspect.isclass(value) or inspect.isfunction(value):
            kind = "class" if inspect.isclass(value) else "function"
            found.append((home, f"reference/{home.rpartition('.')[0]}/{kind}-{name}"))
    return found


def write_pages(app: Sphinx) -> None:
    """Write a page for each class and function that a module exports."""
    texts = {}
    for home, page in (one for module in pages() for one in described(module)):
        kind = page.rpartition("/")[2].partition("-")[0]
        heading = f"{home}\n{'=' * len(home)}\n\n"
        members = "    :members:\n" if kind == "class" else ""
        texts[app.srcdir / f"{page}.rst"] = f"{heading}.. auto{kind}:: {home}\n{members}"
    for old in set((app.srcdir / "reference").glob("*/*.rst")) - set(texts):
        old.unlink()
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class RoomSummary(Autosummary):
    """A table of the classes and functions that a module exports, a line each, and their pages."""

    has_content = False
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        found = described(module)
        self.content = StringList([f"~{home}" for home, _ in found], source=module)
        # names that the package exports too have their page there
        own = [f"    /{page}" for home, page in found if home.rpartition(".")[0] == module]
        tree = "\n".join([".. toctree::", "    :hidden:", "", *own])
        self.options["nosignatures"] = True
        shown = super().run()
        for table in (table for node in shown for table in node.findall(nodes.table)):
            table["classes"].append("stacked")
        return [*shown, *(self.parse_text_to_nodes(tree) if own else [])]


class CommandReference(SphinxDirective):
    """The usage, the examples and the options of one command, from the command itself."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        import typer
        import typer.main

        from evenhand.cli.commands import app

        name = self.arguments[0]
        command: Any = typer.main.get_command(app).commands[name]
        context = command.make_context(f"evenhand {name}", [], resilient_parsing=True)
        shown: list[nodes.Node] = [_block(command.get_usage(context).removeprefix("Usage: "))]
        for text in command.help.split("\n\n"):
            shown.append(
                _block(text) if text.startswith("evenhand ") else nodes.paragraph("", text)
            )
        panels: dict[str, nodes.definition_list] = {}
        for one in command.params:
            title = one.rich_help_panel or f"{one.param_type_name.capitalize()}s"
            panels.setdefault(title, nodes.definition_list(classes=["options"]))
            panels[title] += self._parameter(one)
        for title, listed in panels.items():
            shown += [nodes.rubric("", title), listed]
        return shown

    def _parameter(self, one: Any) -> nodes.definition_list_item:
        is_option = one.param_type_name == "option"
        names = ", ".join(one.opts) if is_option else one.metavar
        value = f" {one.metavar}" if is_option and not one.is_flag else ""
        is_hidden = one.required or one.default is None or one.default is False or one.default == ""
        default = "" if is_hidden else f" (default: {one.default})"
        text = nodes.paragraph("", f"{one.help}{' (required)' if one.required else default}")
        term = nodes.term("", "", nodes.literal("", f"{names}{value}"))
        return nodes.definition_list_item("", term, nodes.definition("", text))


def _block(text: str) -> nodes.literal_block:
    block = nodes.literal_block("", text)
    block["language"] = "none"
    return block


class Navigation:
    """Navigation of the pages of classes and functions.

    It takes half of the time of all pages. Those of one folder differ in the mark of the page
    alone, so it is made once for each.
    """

    MARK = re.compile(
        r'<li class="toctree-l\d current current-page">'
        r'<a class="current reference internal" href="#">'
    )

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}

    def leave_out(self, app: Sphinx, page: str, template: str, context: Any, tree: Any) -> None:
        """Make no navigation if that of the folder is known."""
        if page.rpartition("/")[0] in self._known:
            context["toctree"] = lambda **_: ""

    def fill_in(self, app: Sphinx, page: str, template: str, context: Any, tree: Any) -> None:
        """Mark the page in the navigation of its folder."""
        folder, _, name = page.rpartition("/")
        if folder in self._known:
            made, mark = self._known[folder]
            context["furo_navigation_tree"] = made.replace(_without_mark(mark, name), mark)
        elif folder.startswith("reference/"):
            made = context["furo_navigation_tree"]
            mark = self.MARK.findall(made)[0]
            self._known[folder] = made.replace(mark, _without_mark(mark, name)), mark


def _without_mark(mark: str, name: str) -> str:
    """Return the beginning of an item of the navigation if the page is not the one shown."""
    item = mark.replace(" current current-page", "").replace("current reference", "reference")
    return item.replace("#", f"{name}.html")


def choose_member(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Drop what scikit-learn adds."""
    return True if name in ("set_fit_request", "set_score_request") else None


def restore_property(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Undo that words before a colon are taken for a property's type.

    Types are in the signatures here.
    """
    place = next((i for i, line in enumerate(lines) if line.startswith(":type: ")), None)
    if what in ("property", "attribute") and place is not None:
        lines[0] = f"{lines[place].removeprefix(':type: ')}: {lines[0]}"
        del lines[place]


def link_method(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Make a docstring's "(method: links)" and "(outcomes: 2)" lead to pages with the formulas."""
    for i, line in enumerate(lines):
        linked = METHOD.sub(r"(:doc:`the method </method>`: \1)", line)
        lines[i] = OUTCOMES.sub("(:doc:`kinds of outcomes </method>`)", linked)


def check_complete(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of each exported name that no page describes.

    Warnings are errors where the pages are built.
    """
    described = set(env.domains.python_domain.objects)
    for module in pages():
        for name in importlib.import_module(module).__all__:
            if not is_room(module, name) and home_of(module, name) not in described:
                logger.warning("%s.%s is exported and described on no page", module, name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and the checks."""
    app.add_directive("room", RoomSummary)
    app.add_directive("command-reference", CommandReference)
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-skip-member", choose_member)
    app.connect("autodoc-process-docstring", restore_property, priority=600)
    app.connect("autodoc-process-docstring", link_method, priority=700)
    app.connect("env-check-consistency", check_complete)
    navigation = Navigation()  # before and after that of the theme
    app.connect("html-page-context", navigation.leave_out, priority=400)
    app.connect("html-page-context", navigation.fill_in, priority=600)
    return {"parallel_read_safe": True}
