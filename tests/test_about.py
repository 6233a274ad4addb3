"""Description of an audit: population, period, author, purpose, unit and others."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from command_outcome import Command
from evenhand import InputError, audit_pit
from parts_examples import QUICK_AUDIT as QUICK

GIVEN = {
    "purpose": "approval <b>of</b> the model",
    "site": "North & South",
    "unit": "mg per week",
    "population": "adults",
}


def header(page: str) -> dict[str, str]:
    """Return the description of a page, in its order."""
    listed = page.partition('id="provenance"')[2].partition("</dl>")[0]
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", listed)
    return {html.unescape(name): html.unescape(value) for name, value in pairs}


def table(n: int = 60) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame({"y": random.normal(size=n), "mu": 0.0, "sigma": 1.0})


def test_an_audit_keeps_its_description_in_json_and_on_the_page() -> None:
    found = audit_pit(np.linspace(0.01, 0.99, 50), about=GIVEN, target_name="dose", **QUICK)
    assert found.about == GIVEN
    assert list(json.loads(found.to_json())["about"].items()) == list(GIVEN.items())
    shown = header(found.to_html())
    day = date.fromisoformat(shown.pop("Date"))
    assert abs(datetime.now(UTC).date() - day) <= timedelta(days=1)
    # the known keys have a fixed place, others follow
    assert list(shown.items()) == [
        ("Population", "adults"),
        ("Purpose", "approval <b>of</b> the model"),
        ("Unit of dose", "mg per week"),
        ("Site", "North & South"),
    ]


def test_no_key_hides_the_date_or_another_key() -> None:
    given = {"date": "1999-01-01", "Date": "1998", "Population": "A", "population": "B"}
    page = audit_pit(np.linspace(0.01, 0.99, 50), about=given, **QUICK).to_html()
    shown = header(page)
    assert shown["Date"].startswith("20")
    assert list(shown.items())[1:] == [
        ("Population", "B"),
        ("Date (given)", "1999-01-01"),
        ("Date (given) (given)", "1998"),
        ("Population (given)", "A"),
    ]


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("unit=mg", "about must be a mapping of texts, got str; pass a dict such as"),
        ({"unit": 3}, "about['unit'] must be a text that is not empty, got 3"),
        ({"unit": " "}, "about['unit'] must be a text that is not empty, got ' '"),
        ({"": "mg"}, "each key of about must be a text that is not empty, got ''"),
        ({"unit": "mg", " unit": "g"}, "about must have keys that differ in more than blanks"),
    ],
)
def test_a_description_that_is_no_mapping_of_texts_is_refused(about: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        audit_pit(np.linspace(0.01, 0.99, 50), about=about, **QUICK)


def test_the_command_takes_the_description(tmp_path: Path, evenhand: Command) -> None:
    table().to_csv(tmp_path / "t.csv", index=False)
    forecasts = ("--target", "y", "--forecast", "mean=mu,std=sigma")
    about = ("--about", "unit=mg per week", "--about", "formula = a=b")
    done = evenhand("audit", tmp_path / "t.csv", *forecasts, *about, "--json")
    assert json.loads(done.out)["about"] == {"unit": "mg per week", "formula": "a=b"}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["unit"], "--about must have the form KEY=VALUE, got 'unit'; write --about 'unit=mg"),
        (["unit= "], "--about must have the form KEY=VALUE, got 'unit= '; write --about 'unit=mg"),
        (["a=1", "a=2"], "--about repeats the key 'a'; give each key once"),
    ],
)
def test_the_command_refuses_a_description_before_it_reads_the_table(
    pairs: list[str], message: str, tmp_path: Path, evenhand: Command
) -> None:
    given = [part for pair in pairs for part in ("--about", pair)]
    forecasts = ("--target", "y", "--forecast", "mean=mu,std=sigma")
    complaint = evenhand("audit", tmp_path / "none.csv", *forecasts, *given).complaint()
    assert message in complaint
