"""The files that a visitor of the repository meets first name only what exists, and agree."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser

from evenhand import __version__
from test_docs import check_line, check_shell

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
ALL = [*PAGES, *sorted(path for path in GITHUB.rglob("*") if path.is_file())]

pytestmark = pytest.mark.skipif(not GITHUB.exists(), reason="the repository is not here")


def parsed(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_versions_agree():
    """The package, its metadata, the citation and the newest entry of the changelog."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changes, re.MULTILINE)
    cited = parsed(ROOT / "CITATION.cff")["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [project["version"], cited, newest[1]] == [__version__] * 3


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.stem)
def test_workflows_run_what_is_in_the_repository(workflow):
    for step in (one for job in parsed(workflow)["jobs"].values() for one in job["steps"]):
        assert ("run" in step) != ("uses" in step)
        program, *rest = step.get("run", "test").split()
        if program == ".ci/run":
            assert (ROOT / program).is_file()
        elif program != "test":
            check_line([program, *rest])


def test_nothing_is_published_before_there_is_a_project_on_an_index():
    jobs = parsed(GITHUB / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["if"] is False
    # trusted publishing: a token of the job, no password
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert not any(
        "with" in step and "password" in step["with"] for step in jobs["publish"]["steps"]
    )


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_shell_lines_of_the_pages_can_run(page):
    for block in Sybil(parsers=[CodeBlockParser("sh", check_shell)]).parse(page):
        block.evaluate()


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_paths_exist_and_no_address_is_invented(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"https?://|www\.|\S@\S+\.(com|org|io)\b", text)
    for path in re.findall(r"`((?:src|docs|tests|tools|\.ci|\.github)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path
