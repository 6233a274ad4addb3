"""Documents for pages and text: sections with paragraphs, lists, tables and charts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evenhand._escape import printable
from evenhand._table import Table
from evenhand.report.charts import Chart
from evenhand.results import plain

# --- data embedded in a page: the values that it shows, and their hash


@dataclass(frozen=True)
class PageData:
    r"""Text of the JSON that a page embeds.

    Examples
    --------
    >>> PageData.of({"name": "a <b>"}).text
    '{"name":"a \\u003cb>"}'
    """

    text: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> PageData:
        """Return the data of a page that shows some values.

        Keys are sorted, there are no blanks, and characters beyond ASCII are escaped, so that equal
        values have equal texts.
        """
        text = json.dumps(plain(values), sort_keys=True, separators=(",", ":"))
        # an end tag in a text would end the element that contains the data
        return cls(text.replace("<", "\\u003c"))

    @property
    def sha256(self) -> str:
        """Hash of the text as UTF-8."""
        return hashlib.sha256(self.text.encode()).hexdigest()


# --- documents of sections with paragraphs, lists, tables and charts, for pages and text


@dataclass(frozen=True)
class Sentence:
    """Sentence in three parts; pages show the name of a group in bold."""

    before: str
    name: str = ""
    rest: str = ""
    is_warning: bool = False

    def __str__(self) -> str:
        return self.before + self.name + self.rest


@dataclass(frozen=True)
class Paragraph:
    """Paragraph; `kind` is its style on a page. Text omits hints on the use of a page."""

    text: str
    kind: Literal["", "code", "facts", "hint", "lead", "warn"] = ""


@dataclass(frozen=True)
class Heading:
    """Heading inside a section."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """List of sentences."""

    items: Sequence[Sentence]

    @classmethod
    def of(cls, texts: Iterable[object]) -> Bullets:
        """Return a list of texts."""
        return cls([Sentence(str(text)) for text in texts])


@dataclass(frozen=True)
class StatusBox:
    """Status of an audit: a title such as "Problem found" that they continue, and its kind."""

    title: str
    kind: str
    sentences: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Names and values; values of None are left out."""

    values: Mapping[str, str | None]


@dataclass(frozen=True)
class Pair:
    """Parts side by side."""

    left: Sequence[Part]
    right: Sequence[Part]


@dataclass(frozen=True)
class Download:
    """Button that saves the data of the page as JSON."""

    text: str


Part = Paragraph | Heading | Bullets | StatusBox | Facts | Pair | Download | Table | Chart


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
    in_text : bool, default True
        Whether text includes it; pages include all sections.
    hint : str
        What a reader finds in it. A page folds a section with a hint.
    """

    title: str
    parts: Sequence[Part]
    key: str = ""
    in_text: bool = True
    hint: str = ""


@dataclass(frozen=True)
class Document:
    """Content of a page or text.

    Parameters
    ----------
    title : str
        What it is: the first line.
    sections : sequence of Section
        From top to bottom.
    footer : str
        Closing sentence of a page.
    facts : sequence of str
        Facts beside the title.
    opening : Section, optional
        Main findings: the status and the first paragraph of kind "lead", which is the heading of a
        page, then other parts.
    picture : Section, optional
        Picture below the opening of a page; text omits it.
    next_step : sequence of parts
        What to do next, below the picture.
    cards : sequence of Section
        Sections beside the picture; text omits them.
    data : PageData, optional
        Data that a page embeds.
    """

    title: str
    sections: Sequence[Section]
    footer: str
    facts: Sequence[str] = ()
    opening: Section | None = None
    picture: Section | None = None
    next_step: Sequence[Part] = ()
    cards: Sequence[Section] = ()
    data: PageData | None = None


# --- shortening of names from data

TIP_NAME = 60
"""Most characters of a name in the label of a mark."""


LONGEST = 300
"""Most characters of a name in a table, which bounds the size of a page."""


def short(text: Any, length: int = LONGEST) -> str:
    """Shorten a long text in the middle, since names of groups often differ at their ends."""
    line = printable(text)
    if len(line) <= length:
        return line
    end = length // 3
    return f"{line[: length - end - 1]}…{line[-end:]}"


def tip_name(name: object) -> str:
    """Shorten a name for the label of a mark."""
    return short(" ".join(str(name).split()), TIP_NAME)


# --- description of an audit for its readers: date, population, period, author and purpose

NAME = 60
"""Most characters of the name of the outcome."""

ABOUT_KEYS = ("population", "period", "author", "purpose", "unit")
"""Keys with a fixed place, in their order."""


def about_facts(audit: Mapping[str, Any]) -> Facts:
    """Return the date of an audit and its description, the known keys first."""
    about = audit.get("about") or {}
    target = short(audit.get("target") or "the outcome", NAME)
    date = (audit.get("provenance") or {}).get("date")
    titles = {"unit": f"Unit of {target}"}
    order = [key for key in ABOUT_KEYS if key in about]
    order += [key for key in about if key not in ABOUT_KEYS]
    described: dict[str, str | None] = {"Date": date}
    for key in order:
        title = titles.get(key, f"{key[:1].upper()}{key[1:]}")
        # a key such as "date" must not replace the date of the audit
        while title in described:
            title += " (given)"
        described[title] = about[key]
    return Facts(described)
