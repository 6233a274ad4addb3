"""The pages of the documentation run, name what exists, and leave nothing out."""

import doctest
import importlib
import inspect
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
import typer.main
from sybil import Sybil
from sybil.parsers.rest import CodeBlockParser, DocTestParser, PythonCodeBlockParser

import evenhand
from evenhand.cli.commands import app

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs"
TEXTS = sorted(path for path in PAGES.glob("*.rst") if path.stem != "sg_execution_times")
GALLERY = sorted((PAGES / "gallery").glob("plot_*.py"))

pytestmark = pytest.mark.skipif(not PAGES.exists(), reason="the documentation is not here")

COMMANDS = vars(typer.main.get_command(app))["commands"]

SHELL_RUNS = ("tutorial", "evidence")
"""Pages whose shell lines are run, each with the exit code that its comment names."""


def check_shell(example):
    for words, _ in lines_of(example):
        check_line(words)


def lines_of(example):
    for line in str(example.parsed).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            named = re.search(r"# exit code (\d+)", line)
            yield words, int(named.group(1)) if named else 0


def runner_of(evenhand):
    def run(example):
        for words, code in lines_of(example):
            check_line(words)
            program, *rest = words
            if program == "evenhand":
                done = evenhand(*rest)
                assert done.code == code, (words, done)
            elif program == "python3":
                subprocess.run([sys.executable, *rest], check=True)

    return run


def check_line(words):
    while "=" in words[0]:  # settings of the environment before a program
        words = words[1:]
    program, *rest = words
    if program == "evenhand" and rest == ["--version"]:
        return
    if program == "evenhand":
        assert rest[0] in COMMANDS, rest
        try:
            # parsed, with every option and value checked, but not run
            COMMANDS[rest[0]].make_context(rest[0], rest[1:])
        except Exception as error:
            raise AssertionError(f"evenhand {shlex.join(rest)}: {error}") from error
    elif program in ("python", "python3"):
        file = f"{rest[1]}/__main__.py" if rest[0] == "-m" else rest[0]
        assert rest[0] == "-c" or (ROOT / file).is_file(), rest
    elif program == "make":
        assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), rest
    else:
        assert program == "pip", f"a program that nothing checks: {program}"


def examples_of(page, shell=check_shell):
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    parsers = [
        DocTestParser(options),
        PythonCodeBlockParser(),
        CodeBlockParser(language="sh", evaluator=shell),
    ]
    return Sybil(parsers=parsers).parse(page)


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_blocks_of_the_page_run_in_order(page, tmp_path, monkeypatch, evenhand, request):
    # one test for a page: blocks build on each other, and workers may take tests apart
    monkeypatch.chdir(tmp_path)
    if page.stem == "evidence":
        place, _ = request.getfixturevalue("demo_run")
        Path("evenhand-demo").symlink_to(place / "evenhand-demo")
    with warnings.catch_warnings():
        shell = runner_of(evenhand) if page.stem in SHELL_RUNS else check_shell
        for block in examples_of(page, shell):
            block.evaluate()
    if page.stem == "audit":
        for name in ("stays", "loans"):
            check_sections_of_the_report((tmp_path / f"{name}.html").read_text(encoding="utf-8"))


def test_each_file_and_test_that_a_page_or_script_names_is_there():
    tests = "".join(path.read_text() for path in (ROOT / "tests").glob("test_*.py"))
    for page in [*TEXTS, *GALLERY, PAGES / "gallery" / "GALLERY_HEADER.rst"]:
        for name in re.findall(
            r"\b(?<!/)(?:benchmarks|reproduction|tests|docs/gallery)/[\w/]+\.(?:py|md)",
            page.read_text(),
        ):
            assert (ROOT / name).is_file(), f"{page.name} names {name}"
        for name in re.findall(r"``(test_\w+)``", page.read_text()):
            assert f"def {name}(" in tests, f"{page.name} names {name}"


def check_sections_of_the_report(page):
    shown = re.findall(r"<h2>(.*?)</h2>", page)
    text = (PAGES / "audit-results.rst").read_text(encoding="utf-8")
    listed = text.partition("\nReading the page\n")[2].partition("\nA page contains")[0]
    named = re.findall(r"^(\w.*)\n    \w", listed, re.MULTILINE)
    named += re.findall(r"\*([^*]+)\*", " ".join(listed.split()))
    # the guide lists them in the order of a page with a certificate, which these are not
    assert len(shown) >= 8
    assert not set(shown) - set(named)


def test_errata_named_in_the_method_are_tests():
    shown = (ROOT / "reproduction" / "tests" / "test_errata.py").read_text()
    table = (PAGES / "method.rst").read_text().partition("\nErrata\n")[2]
    table = table.partition("\nOutcomes that are not continuous\n")[0]
    named = re.findall(r"``(?:\.\.\.)?_?(\w+)``", table)
    assert len(named) >= 10
    for name in named:
        assert re.search(rf"def test_\w*{name}\(", shown), name
    # and the other way round: no erratum is left out of the page
    for test in re.findall(r"def test_(\w+)\(", shown):
        assert any(test.endswith(name) for name in named), test


def test_numbers_beside_other_packages_are_those_measured():
    page = (PAGES / "benchmarks.rst").read_text(encoding="utf-8")
    table = page.partition("Measured side by side")[2].partition("Planted groups:")[0]
    measured = (ROOT / "benchmarks" / "results" / "peers.md").read_text(encoding="utf-8")
    # errors of coverage and widths are points here, and fractions there
    points = re.findall(r"([\d.]+) points", table)
    others = re.findall(r"^ .* (\d+\.\d+) \(", table.replace("\n", "\n "), re.MULTILINE)
    assert len(points) >= 8
    assert len(others) >= 2
    for number in points:
        assert f"{float(number) / 100:.4f}" in measured, number
    for number in others:
        assert number in measured, number
    forecasts = (ROOT / "benchmarks" / "results" / "forecasts.md").read_text(encoding="utf-8")
    tables = re.findall(r"on (\d+ of \d+) in both scores", page)
    assert tables == ["9 of 10"]
    assert f"three quarters of the tables: {tables[0]}" in forecasts


MEASURED = [
    ("times", "What the readings are worth", "In the same file", r"(\d+\.\d)\b", 8),
    ("times", "In a simulation the bound", "``", r"(\d+\.\d)\b", 5),
    ("watch", "Why not test every day?", "Maturity, late and missing", r"- (\d+ / \d+)\n", 7),
    ("watch", "Why not test every day?", "Maturity, late and missing", r"- (\d+\.\d%)\n", 3),
    ("watch", "Why not test every day?", "Maturity, late and missing", r"- (\d+\.\d) points", 7),
]
"""Pages, between which words their numbers stand, and how many; points are fractions there."""
RESULTS = {"times": "censored_times.md", "watch": "watch_delays.md"}


@pytest.mark.parametrize(("page", "start", "end", "number", "count"), MEASURED)
def test_numbers_of_a_page_are_those_measured(page, start, end, number, count):
    text = (PAGES / f"{page}.rst").read_text(encoding="utf-8").partition(start)[2]
    measured = (ROOT / "benchmarks" / "results" / RESULTS[page]).read_text(encoding="utf-8")
    found = re.findall(number, text.partition(end)[0])
    assert len(found) == count
    for one in found:
        is_points = re.fullmatch(r"\d+\.\d", one)
        assert (f"{float(one) / 100:.3f}" if is_points else one) in measured, one


def test_every_public_module_has_a_page_made_from_its_names():
    # each name of __all__ gets a page of its own; that each has one is checked where they are built
    listed = (PAGES / "api.rst").read_text()
    made = {"evenhand": listed}
    for room in filter(lambda name: inspect.ismodule(getattr(evenhand, name)), evenhand.__all__):
        assert f"reference/{room}\n" in listed
        made[f"evenhand.{room}"] = (PAGES / "reference" / f"{room}.rst").read_text()
    for module, page in made.items():
        assert re.findall(r"^\.\. room:: (\S+)$", page, re.MULTILINE) == [module]
        assert importlib.import_module(module).__all__


def test_every_command_has_its_options_described():
    page = (PAGES / "commands.rst").read_text()
    assert set(re.findall(r"command-reference:: (\w+)", page)) == set(COMMANDS)


def test_sections_that_pages_name_exist():
    for page in [*TEXTS, *GALLERY]:
        text = page.read_text(encoding="utf-8")
        for target, name in re.findall(r":doc:`/?([\w/-]+)`,\s+(?:#\s+)?\*([^*]+)\*", text):
            title = " ".join(name.replace("#", " ").split())
            shown = (PAGES / f"{target}.rst").read_text(encoding="utf-8")
            assert re.search(rf"^{re.escape(title)}\n[=~-]+$", shown, re.MULTILINE), title


def test_the_drawing_of_the_rooms_follows_the_contract_on_imports():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    floors = next(part["layers"] for part in contracts["contracts"] if part["type"] == "layers")
    drawing = (PAGES / "developers.rst").read_text().partition("code-block:: text\n\n")[2]
    drawn = drawing.partition("\n\n")[0].splitlines()
    assert [re.split(r" {2,}", line.strip())[0] for line in drawn] == floors
