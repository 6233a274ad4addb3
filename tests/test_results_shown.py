"""How results show themselves: a line each, a summary in notebooks, comparable."""

import dataclasses
import html
import json
import re
from datetime import UTC, date, datetime, timedelta
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge

from complaints import refused
from evenhand import Forecast, Outcomes, RandomizedRegressor, audit, audit_pit, certify, randomize
from evenhand.audits import compare
from evenhand.calibration import as_cells, count_pits, local_levels_band
from evenhand.certificates import certify_counts, certify_link, certify_pit
from evenhand.datasets import make_doses
from evenhand.decisions import BayesDecision, StepLoss, loss_guarantee
from evenhand.draws import jittered
from evenhand.links import Entropic
from evenhand.search import find_group, null_curve, worst_group_curve
from parts_examples import QUICK_AUDIT as QUICK

N = 400

HOSTILE = "<b>groups\n\x1b[31m</b>" + "x" * 500


@cache
def results():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"a": rng.normal(size=N), "<b>": rng.normal(size=N)}), rng.normal(size=N)
    stated = Forecast.from_normal(np.zeros(N), np.ones(N))
    r = jittered(N, 16, rng)
    served, half = stated.randomized(0.2, r=r), {"<half>": np.arange(N) < N // 2}
    pit = served.pit(y)
    counts = count_pits(pit, r, groups=half, random_state=0)
    first = audit(stated, X, y, groups=half, random_state=0, name=HOSTILE)
    second = audit(served, X, y, groups=half, random_state=0, name="served")
    bank = BayesDecision(("yes", "no"), {"yes": StepLoss([0.0], [4.0, 0.0]), "no": 1.0})
    return {
        "audit": first,
        "audit of draws": second,
        "audit of PITs": audit_pit(pit, r, random_state=0),
        "comparison": compare(first, second),
        "certificate": certify(served, y=y, groups=half, random_state=0),
        "certificate of one forecast": certify_pit(pit[:, 0], random_state=0),
        "certificate by bets": certify_pit(pit, r, method="betting", mass=0.3, random_state=0),
        "certificate of counts": certify_counts(counts, is_randomized=True),
        "certificate of links": certify_link(stated.pit(y), Entropic(0.2)),
        "selection": randomize(BayesianRidge(), X, y, goal=0.45, random_state=0),
        "loss guarantee": loss_guarantee(bank, served, y, k=2, masses=0.5, random_state=0),
        "decisions": bank.decide(served),
        "PITs": as_cells(pit, r),
        "counts": counts,
        "part of a certificate": certify_pit(pit, r).own,
        "outcomes": Outcomes(y, weight=np.ones(N), person=np.arange(N)),
        "forecast": stated,
        "forecast of draws": served,
        "distribution": served.distribution,
        "samples": Forecast.from_samples(rng.normal(size=(N, 50))),
        "quantiles": Forecast.from_quantiles([0.1, 0.5, 0.9], np.sort(rng.normal(size=(N, 3)))),
        "found group": find_group(pit, X, 0.3, random_state=0),
        "worst group curve": worst_group_curve(pit, [0.1, 0.5], random_state=0),
        "null curve": null_curve(pit, [0.1, 0.5], n_simulations=3, random_state=0),
        "band": local_levels_band(np.abs(pit[:, 0] - 0.5), 0.5, 0.95),
        "link": Entropic(0.2),
        "data set": make_doses(30, random_state=0),
        "model": RandomizedRegressor(BayesianRidge()).fit(X, y),
        "model not fitted": RandomizedRegressor(BayesianRidge()),
    }


def test_a_result_is_one_line():
    for name, result in results().items():
        shown = repr(result)
        assert shown.isprintable(), name  # no line break is
        assert len(shown) <= 400, name
        assert " at 0x" not in shown, name


def test_a_result_with_a_summary_shows_it_in_notebooks():
    for name, result in results().items():
        if hasattr(result, "summary"):
            shown = result._repr_html_()
            assert shown.startswith("<pre>"), name
            assert shown.endswith("</pre>"), name
            assert "<" not in shown.removeprefix("<pre>").removesuffix("</pre>"), name
            assert str(result) == result.summary(), name


def test_a_result_equals_itself_and_nothing_else():
    for name, result in results().items():
        same = result
        assert (result == same) is True, name
        assert (result != same) is False, name
        assert (result == "another") is False, name
        if dataclasses.is_dataclass(result):
            # of equal values or another object: either is an answer, an error is none
            assert (result == dataclasses.replace(result)) in {True, False}, name


# --- description of an audit: population, period, author, purpose, unit and others


GIVEN = {
    "purpose": "approval <b>of</b> the model",
    "site": "North & South",
    "unit": "mg per week",
    "population": "adults",
}


def test_an_audit_keeps_its_description_in_json_and_on_the_page():
    found = audit_pit(np.linspace(0.01, 0.99, 50), about=GIVEN, target_name="dose", **QUICK)
    assert found.about == GIVEN
    assert list(json.loads(found.to_json())["about"].items()) == list(GIVEN.items())
    listed = found.to_html().partition('id="provenance"')[2].partition("</details>")[0]
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", listed)
    shown = {html.unescape(name): html.unescape(value) for name, value in pairs}
    day = date.fromisoformat(shown.pop("Date"))
    assert abs(datetime.now(UTC).date() - day) <= timedelta(days=1)
    assert shown.pop("Unit of dose") == GIVEN["unit"]
    assert shown.items() >= {key: text for key, text in GIVEN.items() if key != "unit"}.items()


def test_no_key_hides_the_date_or_another_key():
    given = {"date": "1999-01-01", "Date": "1998", "Population": "A", "population": "B"}
    page = audit_pit(np.linspace(0.01, 0.99, 50), about=given, **QUICK).to_html()
    description, found = page.partition('id="provenance"')[2].split("</dl>")[:2]
    assert re.search("<dt>Date</dt><dd>20", found)
    assert re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", description) == list(given.items())


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("unit=mg", "about must be a mapping of texts, got str; pass a dict such as"),
        ({"unit": 3}, "about['unit'] must be a text that is not empty, got 3"),
        ({"unit": " "}, "about['unit'] must be a text that is not empty, got ' '"),
        ({"": "mg"}, "each key of about must be a text that is not empty, got ''"),
    ],
)
def test_a_description_that_is_no_mapping_of_texts_is_refused(about, message):
    refused(re.escape(message), audit_pit, np.linspace(0.01, 0.99, 50), about=about, **QUICK)
