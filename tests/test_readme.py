"""The README: short, its code runs block after block, and it prints what stands below it."""

from __future__ import annotations

import contextlib
import html
import io
import re
import subprocess
from pathlib import Path

import pytest
from PIL import Image
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from test_docs import check_shell

README = Path(__file__).parent.parent / "README.md"
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


def near(printed: str, shown: str) -> None:
    """Check that a text is the printed one, except for the last digits of numbers.

    Lines of three dots stand for lines that are left out. Another processor rounds sums of floats
    differently, which moves a split of a tree now and then: numbers may differ by 5% or 0.5.
    """
    rest = printed
    for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE):
        words = NUMBER.sub("#", part).split()
        if not words:
            continue
        pattern = r"\s+".join(re.escape(word) for word in words).replace(r"\#", NUMBER.pattern)
        found = re.search(pattern, rest)
        assert found, f"not printed: {part}"
        numbers = [
            [float(number.replace(",", "")) for number in NUMBER.findall(text)]
            for text in (found.group(), part)
        ]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.05, abs=0.5)
        rest = rest[found.end() :]


def test_the_blocks_of_the_readme_run_in_order_and_print_what_is_shown() -> None:
    # one test, since blocks build on each other and parallel workers may take tests apart
    code = list(Sybil(parsers=[PythonCodeBlockParser()]).parse(README))
    assert len(code) == len(blocks("python")) >= 3
    shown = blocks("text")
    assert len(shown) == len(code)
    for block, expected in zip(code, shown, strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            block.evaluate()
        near(printed.getvalue(), expected)


def test_printed_numbers_are_compared() -> None:
    near("off by 24.5 points", "off by 24.6\npoints")
    near("first\nsecond\nthird 2,000 rows\n", "first\n...\nthird 2,001 rows\n")
    with pytest.raises(AssertionError):
        near("first\nsecond\nthird\n", "third\n...\nfirst\n")
    with pytest.raises(AssertionError):
        near("off by 24.5 points", "off by 30.0 points")
    with pytest.raises(AssertionError):
        near("off by 24.5 points", "off by 24.5 percent")


def test_the_readme_is_short() -> None:
    text = README.read_text()
    assert len(text.split()) <= 800
    for language in ("python", "sh", "text"):
        for line in "".join(blocks(language)).splitlines():
            assert len(line) <= 88, line


def test_the_shell_lines_of_the_readme_name_what_is_there() -> None:
    shell = list(
        Sybil(parsers=[CodeBlockParser(language="sh", evaluator=check_shell)]).parse(README)
    )
    assert len(shell) >= 1
    for block in shell:
        block.evaluate()


def test_links_of_the_readme_name_files_that_exist() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README.read_text())
    assert len(links) >= 8
    for link in links:
        if not link.startswith("https://"):
            assert (README.parent / link).is_file(), link


def test_the_first_install_line_is_on_the_first_screen() -> None:
    lines = README.read_text().splitlines()
    assert next(k for k, line in enumerate(lines) if line.startswith("pip install .")) < 35


def test_the_picture_of_the_report_is_that_of_the_demo(
    demo_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    # made by tools/draw_report_picture.py
    picture = README.parent / "docs" / "_static" / "report.png"
    assert picture.stat().st_size < 300_000
    shown = Image.open(picture).info["Description"]
    page = (demo_run[0] / "evenhand-demo" / "report.html").read_text(encoding="utf-8")
    page = html.unescape(re.sub(r"<(style|script).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL))
    status, headline = shown.split("\n")
    for text in (status.removeprefix("Problem found"), headline):
        near(page, text)
    assert re.search(r"\bProblem found\b", page)
