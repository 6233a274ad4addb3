"""The README: short, its code runs block after block, and it prints what stands below it."""

import contextlib
import html
import io
import json
import re
import runpy
import shlex
from pathlib import Path

import pytest
from PIL import Image
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

README = Path(__file__).parent.parent / "README.md"
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


def near(printed, shown):
    """Check that a text is the printed one, except for the last digits of numbers.

    Lines of three dots stand for lines that are left out. Another processor rounds sums of floats
    differently, which moves a split of a tree now and then: numbers may differ by 5% or 0.5.
    """
    rest = re.sub(r"^─+$", "", printed, flags=re.MULTILINE)  # rules of tables
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


def test_every_block_and_number_of_the_readme_is_of_one_run_of_the_demo(
    demo_run, evenhand, tmp_path, monkeypatch
):
    folder = demo_run[0] / "evenhand-demo"
    (tmp_path / "evenhand-demo").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    audit, repair, proof = blocks("text")
    lines = [shlex.split(block.replace("\\\n", " "))[1:] for block in blocks("sh")[1:]]
    for line, shown in zip(lines, (audit, proof), strict=True):
        near(evenhand(*line).done().out, shown)
    (code,) = Sybil(parsers=[PythonCodeBlockParser()]).parse(README)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code.evaluate()
    near(printed.getvalue(), repair)
    # the coverages of the picture and of the first screen
    script = README.parent / "tools" / "draw_first_picture.py"
    made = runpy.run_path(str(script))["coverages"](folder)
    picture = Image.open(README.parent / "docs" / "_static" / "coverage.png").info["Description"]
    near(json.dumps(made), picture)
    everyone, worst = ([made[one][group][0] for one in made] for group in list(made["before"])[:2])
    first = README.read_text().partition("cover ")[2].partition(", on")[0]
    numbers = [float(number) for number in re.findall(r"(\d+\.\d)%", first)]
    assert numbers == pytest.approx([everyone[0], worst[0], everyone[1], worst[1]], abs=0.5)
    alt = (README.parent / "docs" / "index.rst").read_text().partition("Before the repair:")[2]
    numbers = [float(number) for number in re.findall(r"(\d+\.\d)%", alt)][:4]
    assert numbers == pytest.approx([worst[0], everyone[0], worst[1], everyone[1]], abs=0.5)


def test_printed_numbers_are_compared():
    near("off by 24.5 points", "off by 24.6\npoints")
    near("first\nsecond\nthird 2,000 rows\n", "first\n...\nthird 2,001 rows\n")
    with pytest.raises(AssertionError):
        near("first\nsecond\nthird\n", "third\n...\nfirst\n")
    with pytest.raises(AssertionError):
        near("off by 24.5 points", "off by 30.0 points")
    with pytest.raises(AssertionError):
        near("off by 24.5 points", "off by 24.5 percent")


def test_the_readme_is_short():
    lines = README.read_text().splitlines()
    assert len(lines) <= 95
    # the first install line is on the first screen
    assert next(k for k, line in enumerate(lines) if line.startswith("pip install .")) < 35
    for language in ("python", "sh", "text"):
        for line in "".join(blocks(language)).splitlines():
            assert len(line) <= 88, line


def test_links_of_the_readme_name_files_that_exist():
    links = re.findall(r"\]\(([^)]+)\)", README.read_text())
    assert len(links) >= 8
    for link in links:
        if not link.startswith("https://"):
            assert (README.parent / link).is_file(), link


def test_the_picture_of_the_report_is_that_of_the_demo(demo_run):
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
