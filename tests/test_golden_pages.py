"""Golden pages: the numbers that the demo's three reports show, as pages and in a terminal.

`tests/golden/pages/<name>.json` holds an audit as the demo wrote it, and `<name>.numbers.txt` how
often each number is in the text of the page made from it, and in its text for a terminal. So other
words change no golden file. Nothing is computed: the numbers are the same on every machine. They
are written again, with the hashes of golden files, by::

    python tests/test_golden_pages.py --write --freeze
    python tests/test_golden_pages.py --write evenhand-demo     # audits of a new demo as well
"""

import functools
import html
import json
import os
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from evenhand.report import audit_html, audit_text
from evenhand.results import AuditRows
from golden_files import counted, freeze, shown_numbers

PAGES = Path(__file__).resolve().parent / "golden" / "pages"
NAMES = ("audit", "audit-repaired", "audit-randomized")


def page_text(page):
    """Return what a reader of a page sees or hears: labels, and a line for each block."""
    text = re.sub(
        r"<(style|script).*?</\1>|</?(?:strong|em|code|a|span)\b[^>]*>", "", page, flags=re.S
    )
    text = re.sub(r'<[^>]*aria-label="([^"]*)"[^>]*>', r"\n\1\n", text)
    text = re.sub(r"<small\b[^>]*>|</small>", " ", text)
    lines = html.unescape(re.sub(r"<[^>]+>", "\n", text)).split("\n")
    return "\n".join(" ".join(line.split()) for line in lines if line.strip()) + "\n"


@functools.cache
def audit_of(name):
    return AuditRows.read((PAGES / f"{name}.json").read_bytes())


@functools.cache
def page_of(name):
    return audit_html(audit_of(name))


def numbers_in(values):
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list):
        for one in values:
            yield from numbers_in(one)
    elif isinstance(values, int | float) and not isinstance(values, bool):
        yield values


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(found[1])


def numbers_of(name):
    """Return how often each number is on a page and in a terminal; of the data, how many."""
    texts = {"page": page_text(page_of(name)), "terminal": audit_text(audit_of(name), full=True)}
    numbers = {place: counted(shown_numbers(text)) for place, text in texts.items()}
    return numbers | {"data": {"n": sum(1 for _ in numbers_in(data_of(page_of(name))))}}


def written(numbers):
    """Return numbers as text: each once, with an x and how often it is there if more than once."""
    lines = []
    for place, counts in numbers.items():
        shown = " ".join(one if n == 1 else f"{one}x{n}" for one, n in counts.items())
        lines += [f"{place}:", *textwrap.wrap(shown, 98, break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def read(text):
    numbers = {}
    for word in text.split():
        if word.endswith(":"):
            place = numbers[word[:-1]] = {}
        else:
            number, _, n = word.partition("x")
            place[number] = int(n or 1)
    return numbers


@pytest.mark.parametrize("place", ["page", "terminal", "data"])
@pytest.mark.parametrize("name", NAMES)
def test_a_report_shows_the_golden_numbers(name, place):
    want = read((PAGES / f"{name}.numbers.txt").read_text(encoding="utf-8"))[place]
    got = numbers_of(name)[place]
    changed = {one: f"{got.get(one, 0)} times, not {want.get(one, 0)}" for one in got | want}
    assert not {one: text for one, text in changed.items() if got.get(one) != want.get(one)}


@pytest.mark.parametrize("name", NAMES)
def test_the_data_of_a_page_are_numbers_of_its_audit(name):
    known = Counter(numbers_in(json.loads(audit_of(name).to_json())))
    assert not Counter(numbers_in(data_of(page_of(name)))) - known


def functions_run(call):
    """Return the functions of the package that a call runs, by file; cells of tables are none."""
    seen = set()

    def trace(frame, event, _):
        code = frame.f_code
        file = code.co_filename.rpartition(f"{os.sep}evenhand{os.sep}")[2]
        if event == "call" and file != code.co_filename and not code.co_name.startswith("<"):
            seen.add((file, code.co_qualname))

    call()  # what is kept from the first call, such as templates, is no part of a page
    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {(file, name) for file, name in seen if file.endswith(".py")}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_and_a_summary_run_few_functions(name):
    def text_of():
        return audit_text(AuditRows.read((PAGES / f"{name}.json").read_bytes()))

    def html_of():
        return audit_html(AuditRows.read((PAGES / f"{name}.json").read_bytes()))

    for call, most, most_files in ((text_of, 60, 8), (html_of, 150, 11)):
        run = functions_run(call)
        assert len(run) <= most
        assert len({file for file, _ in run}) <= most_files


def write(demo):
    """Write the golden numbers again, of the audits of a new demo if its folder is given."""
    for name in NAMES:
        if demo is not None:
            (PAGES / f"{name}.json").write_bytes((demo / f"{name}.json").read_bytes())
        (PAGES / f"{name}.numbers.txt").write_text(written(numbers_of(name)), encoding="utf-8")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--freeze"]
    if words[:1] != ["--write"]:
        sys.exit(__doc__)
    write(Path(words[1]) if words[1:] else None)
    if "--freeze" in sys.argv:
        freeze()
