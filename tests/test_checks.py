"""Messages about bad input name place, value and remedy; good input comes back as documented."""

import math
import re
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from complaints import complaint, refused
from evenhand._validate import (
    DiscreteOutcomeWarning,
    MissingExtraError,
    check_choice,
    check_finite,
    check_fraction,
    check_outcomes,
    discrete_kind,
    outcomes_checked,
    require_extra,
)


def test_a_missing_extra_is_named_with_the_line_that_installs_it():
    assert require_extra("json", "neural").dumps([1]) == "[1]"
    with pytest.raises(MissingExtraError) as caught:
        require_extra("no_such_module_of_anyone.sub", "neural")
    assert isinstance(caught.value, ImportError)
    assert "no_such_module_of_anyone.sub" in str(caught.value)
    assert "pip install 'evenhand[neural]'" in str(caught.value)


def test_an_import_that_fails_inside_an_extra_is_not_taken_for_a_missing_extra(
    tmp_path, monkeypatch
):
    (tmp_path / "extra_with_a_hole.py").write_text("import no_such_module_of_anyone\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_anyone") as caught:
        require_extra("extra_with_a_hole", "neural")
    assert not isinstance(caught.value, MissingExtraError)
    assert "extra_with_a_hole" not in sys.modules


def test_what_is_no_fraction_is_refused_as_received():
    for value, got in (
        (90, "90; .*0.9, not 90"),
        (np.float64(1.5), "1.5; .*0.9, not 90"),
        (-0.1, "-0.1"),
        (math.nan, "nan"),
        ("two\nlines", r"'two\\nlines'"),
    ):
        refused(f"^mass .*above 0 and below 1.* {got}$", check_fraction, "mass", value)


def test_a_choice_is_one_of_those_named():
    names = ("entropic", "laplace")
    assert check_choice("link", "laplace", names) == "laplace"
    question = "'Laplace'; did you mean 'laplace'\\?"
    for value, got in (("Laplace", question), (None, "None"), (3, "3")):
        refused(f"^link .*'entropic', 'laplace'.* {got}$", check_choice, "link", value, names)


def test_values_that_cannot_be_used_are_named_with_place_and_remedy():
    refused(r"^y\[1\] .*finite.*nan; drop .*2", check_finite, "y", [1.0, math.nan, math.inf])
    refused(r"^y\[0\] .*finite.*-inf; drop", check_finite, "y", [-math.inf])
    labelled = pd.Series([1.0, None], index=["a", "b"])
    refused(r"^y\[1\] .*finite.*nan; drop", check_finite, "y", labelled)
    refused(r"^y .*1 dimension,.*\(1, 1\)", check_finite, "y", [[1.0]])
    refused(r"^y .*1 dimension,.*\(\)", check_finite, "y", 3.0)
    refused("^y .*empty.*at least one value", check_finite, "y", [])


def with_atom(n, share, value=7.0):
    """`n` outcomes, exactly `round(share * n)` of them `value` and the others distinct."""
    count = round(share * n)
    return np.concatenate((np.full(count, value), 100.0 + np.arange(n - count)))


def silent(y, **kwargs):
    with warnings.catch_warnings(action="error"):
        check_outcomes(y, **kwargs)


def warned(y, **kwargs):
    with pytest.warns(DiscreteOutcomeWarning) as caught:
        check_outcomes(y, **kwargs)
    assert len(caught) == 1
    return str(caught[0].message)


def test_a_tenth_of_the_rows_may_share_an_outcome_and_no_more():
    assert discrete_kind(with_atom(1000, 0.100)) is None
    assert re.search(r"^y is 7 in 10.0% of the rows", warned(with_atom(1000, 0.100)))
    message = warned(with_atom(1000, 0.101), name="price")
    assert re.search(r"^price is 7 in 10\.1% of the rows, so no continuous forecast", message)


@pytest.mark.parametrize("n", [50, 1000])
def test_a_fiftieth_of_the_rows_may_share_an_outcome_in_silence_and_no_more(n):
    silent(with_atom(n, 0.02))
    assert re.search(r"^y is 7 in .*% of the rows", warned(with_atom(n, 0.02 + 1 / n + 1e-9)))


def test_the_warning_names_the_forecaster_of_such_outcomes():
    five, amounts = np.arange(100.0) % 5, 0.5 + np.arange(50)
    at_zero = r"HurdleRegressor\(at=0\) or chance_of_zero= for am"
    for y, remedy in (
        (np.arange(100.0) % 2, "use ClassifierForecaster or probability= for an event, coded"),
        (five, "outcome=count for counts or ClassifierForecaster or pmf= for o"),
        (five - 2, "use ClassifierForecaster or pmf= for ordered scores"),
        (np.r_[np.zeros(50), np.arange(50) % 4 + 0.5], f"scores or {at_zero}"),
        (np.repeat(np.arange(25.0), np.arange(25, 0, -1) ** 2), "use CountRegressor or outcome=c"),
        (np.r_[np.zeros(50), amounts], f"e {at_zero}ounts$"),
        (np.r_[np.full(50, 99.0), amounts], r'HurdleRegressor\(at=99, end="high"\)$'),
        (np.r_[np.full(50, 9.0), amounts], "separate model of that value"),
    ):
        assert re.search(remedy, warned(y))


@pytest.mark.parametrize("kind", [None, "count", "hurdle"])
def test_other_kinds_may_have_atoms(kind):
    silent(np.arange(100.0) % 5, kind=kind)
    refused("2 rows;.* 20", check_outcomes, np.arange(2.0), kind=kind)


def test_an_event_is_zero_or_one():
    silent(np.arange(100.0) % 2, kind="binary")
    silent(np.zeros(100), kind="binary")
    message = complaint(check_outcomes, np.arange(100.0) % 3, kind="binary")
    assert message == "y[2] must be 0 or 1, got 2.0; code the event as 1"


def test_outcomes_that_a_caller_has_checked_are_not_checked_again():
    with outcomes_checked():
        silent(np.ones(2))
        with outcomes_checked():
            silent(np.ones(2))
        silent(np.ones(2))
    complaint(check_outcomes, np.ones(2))


@pytest.mark.parametrize("kind", [None, "continuous"])
def test_a_constant_is_called_constant(kind):
    constant = r"^y is constant .*2\.5 .*30 rows"
    refused(constant, check_outcomes, np.full(30, 2.5), kind=kind)
