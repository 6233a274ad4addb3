"""Documents of sections with paragraphs, lists, tables and charts, as pages and as text."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from evenhand._escape import printable, shortened, visible
from evenhand._format import whole
from evenhand._table import SCREEN, Table, Value, line_width, lines_within, wrapped
from evenhand.report.charts import Chart, digits, frame_of
from evenhand.report.kinds import in_one_line
from evenhand.results import plain

if TYPE_CHECKING:
    from jinja2 import Environment

CODE = re.compile("`([^`]+)`")

# --- data embedded in a page: the values that it shows, and their hash


def embedded(values: Mapping[str, Any]) -> str:
    r"""Return the JSON that a page embeds; equal values have equal texts, as keys are sorted.

    Examples
    --------
    >>> embedded({"name": "a <b>"})
    '{"name":"a \\u003cb>"}'
    """
    text = json.dumps(plain(values), sort_keys=True, separators=(",", ":"))
    # an end tag in a text would end the element that contains the data
    return text.replace("<", "\\u003c")


# --- documents and their sections


@dataclass(frozen=True)
class Sentence:
    """Sentence that begins with a name, which pages show in bold."""

    text: str
    name: str
    is_warning: bool = False

    def __str__(self) -> str:
        return self.name + self.text


@dataclass(frozen=True)
class Paragraph:
    """Paragraph; `kind` is its style on a page. Text omits hints on the use of a page."""

    text: str
    kind: Literal["", "code", "heading", "hint", "warn"] = ""


@dataclass(frozen=True)
class Bullets:
    """List of sentences or texts, which `headed` shows below its label."""

    items: Sequence[Sentence | str]
    label: str = ""

    def __bool__(self) -> bool:
        return bool(self.items)


@dataclass(frozen=True)
class Facts:
    """Names and values; values of None are left out."""

    values: Mapping[str, str | None]


Part = Paragraph | Bullets | Facts | Table | Chart


@dataclass(frozen=True)
class Section:
    """Section of a document.

    Parameters
    ----------
    title : str
        Heading.
    parts : sequence of parts
        From top to bottom.
    key : str
        Target of links.
    hint : str
        What a reader finds in it. A page folds a section with a hint.
    """

    title: str
    parts: Sequence[Part]
    key: str = ""
    hint: str = ""


def section(key: str, title: str, hint: str, *parts: Part | None) -> Section:
    """Return a section of the parts that there are; a document omits one without any."""
    return Section(title, [one for one in parts if one], key, hint)


def headed(found: Iterable[Table | Bullets | None]) -> Iterator[Part]:
    """Yield tables and lists that are not empty, with their labels as headings."""
    for one in found:
        if one:
            yield from [Paragraph(one.label, "heading")] if one.label else []
            yield one


class Headline(NamedTuple):
    """Status such as "Problem found", its style, and the words that continue it."""

    title: str
    tone: str
    text: str


@dataclass(frozen=True)
class Document:
    """Content of a page or text.

    Parameters
    ----------
    title : str
        What it is: the first line.
    sections : sequence of Section
        From top to bottom.
    facts : sequence of str
        Facts beside the title.
    lead : str
        The main finding: the heading of a page.
    opening : sequence of parts
        Other findings.
    data : str
        JSON that a page embeds.
    status : Status, optional
        Status of what was examined.
    picture : Section, optional
        Picture below the opening of a page; text omits it.
    next_step : sequence of parts
        What to do next, below the picture.
    cards : sequence of Section
        Sections beside the picture.
    """

    title: str
    sections: Sequence[Section]
    facts: Sequence[str]
    lead: str
    opening: Sequence[Part]
    data: str
    status: Headline | None = None
    picture: Section | None = None
    next_step: Sequence[Part] = ()
    cards: Sequence[Section] = ()


# --- where an audit comes from


def about_facts(about: Mapping[str, str], target: str | None = None) -> Facts | None:
    """Return the description of an audit, with the keys as they were given; None without one."""
    unit = f"Unit of {in_one_line(target or 'the outcome')}"
    described = {unit if key == "unit" else key: text for key, text in about.items()}
    return Facts(described) if described else None


def source_facts(known: Mapping[str, Any]) -> Facts | None:
    """Return what is needed to repeat an audit, from its provenance; None if nothing is known."""
    model, source = known.get("model") or {}, known.get("data") or {}
    packages = {"evenhand": known.get("evenhand"), "Python": known.get("python")}
    packages |= known.get("packages") or {}
    versions = [f"{name} {version}" for name, version in packages.items() if version]
    n, n_parts = source.get("n_rows"), source.get("n_parts")
    in_parts = f" in {whole(n_parts)} parts, {whole(source.get('n_searched'))} searched"
    seed = known.get("random_state")
    facts = {
        "Date": known.get("date"),
        "Command": f"`{known['command']}`" if known.get("command") else "none: made from Python",
        "Model": ", ".join(filter(None, [model.get("name"), model.get("kind")])) or None,
        # the hash stored in a model folder, which matches a report with its model
        "Hash of the model": model.get("sha256"),
        "Data": source.get("name"),
        "Rows": None if n is None else f"{whole(n)}{in_parts if n_parts else ''}",
        "Hash of the data": source.get("sha256"),
        "Hash of the values": known.get("values_sha256"),
        "Draws": known.get("draws"),
        "Seed": str("not set: bootstrap and simulations vary" if seed is None else seed),
        "Software": ", ".join(versions) or None,
    }
    return Facts(facts) if known else None


# --- rendering as a page


def document_html(document: Document) -> str:
    """Return a document as a page; its script sorts and searches tables."""
    script = _own_file("page.js")
    # the policy contains the hash of our script, so that no other inline script runs
    seal = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _environment().get_template("page.html.j2")
    return page.render(
        document=document,
        script=script,
        seal=seal,
        style=_own_file("page.css"),
        icon=base64.b64encode(_own_file("icon.svg").encode()).decode(),
        digest=hashlib.sha256(document.data.encode()).hexdigest(),
    )


@cache
def _own_file(name: str) -> str:
    """Return the text of a file that goes into every page."""
    return files("evenhand.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    # imported here: `import evenhand` and text summaries do not wait for jinja2
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    # all text of pages is escaped; only our own files and drawings are marked as safe, in templates
    environment = Environment(
        loader=PackageLoader("evenhand.report"),
        autoescape=select_autoescape(disabled_extensions=["md.j2"], default=True),
        undefined=StrictUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        kind=lambda part: type(part).__name__,
        short=shortened,
        code=_with_code,
        escaped=_escaped,
        order=_order,
        frame=frame_of,
        is_bad=lambda row: any(isinstance(one, Value) and one.tone == "bad" for one in row),
        zip=zip,
    )
    return environment


def _printed(value: Any) -> Any:
    """Format coordinates, and escape control characters of texts except our own markup."""
    if isinstance(value, float):
        return digits(value)
    return value if hasattr(value, "__html__") else printable(value)


def _with_code(text: object) -> Any:
    """Escape a text, and mark what stands between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(CODE.sub(r"<code>\1</code>", str(escape(printable(text)))))


def _order(order: float | None) -> str:
    """Format the value by which a column is sorted."""
    # six digits nearly always sort as the full value, in half the bytes
    return "" if order is None or not math.isfinite(order) else f"{order:.6g}"


# --- rendering as text


def document_text(document: Document) -> str:
    """Return a document as text."""
    next_step = Section("Next", document.next_step)
    blocks = [wrapped(f"{document.title}: {', '.join(document.facts)}")]
    if document.status is not None:
        title, _, text = document.status
        blocks.append(wrapped(f"{title.upper()} {text}"))
    blocks += filter(None, [wrapped(document.lead), _texts(document.opening)])
    for section in (next_step, *document.cards, *document.sections):
        if text := _texts(section.parts):
            blocks.append(f"{wrapped(section.title.upper())}\n{text}")
    return "\n\n".join(blocks)


def short_text(*blocks: Part | str | None) -> str:
    """Return blocks as short text, one blank line apart, but none below a heading."""
    with lines_within(line_width(SCREEN)):
        return _texts(Paragraph(one) if isinstance(one, str) else one for one in blocks if one)


def _texts(parts: Iterable[Part]) -> str:
    """Return parts as text, one blank line apart, but none below a heading."""
    texts = [(text, part) for part in parts if (text := _text(part))]
    return "".join(
        f"{text}\n" if isinstance(part, Paragraph) and part.kind == "heading" else f"{text}\n\n"
        for text, part in texts
    ).rstrip()


def _text(part: Part) -> str:
    """Return a part as text; figures, and hints about what only a page has, are omitted."""
    match part:
        case Paragraph(text, "code"):
            # lines of a command end with a backslash, and must not be broken elsewhere
            return "\n".join(map(visible, text.split("\n")))
        case Paragraph(text, kind) if kind != "hint":
            return wrapped(f"{text}:" if kind == "heading" else text)
        case Bullets():
            width = line_width() - 2
            items = (wrapped(str(item), width).replace("\n", "\n  ") for item in part.items)
            return "\n".join(f"- {item}" for item in items)
        case Facts():
            known = (f"{name}: {value}" for name, value in part.values.items() if value)
            return "\n".join(map(wrapped, known))
        # tables of thousands of groups stay readable; the page and JSON contain more
        case Table():
            n, most = len(part.rows), part.printed
            rest = f"\n{most} of {n:,} rows are printed." if n > most else ""
            return part.text(most=most) + rest
        case _:
            return ""


# --- rendering as Markdown, for documents of others


def document_markdown(document: Document) -> str:
    """Return a document as Markdown, without charts and folded sections."""
    return _environment().get_template("document.md.j2").render(document=document).rstrip() + "\n"


def _escaped(text: object) -> str:
    """Escape what Markdown would read as HTML."""
    return visible(str(text)).replace("<", "&lt;")
