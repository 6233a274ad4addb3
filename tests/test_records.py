"""Distributions as JSON values, and back."""

import json
from itertools import product

import numpy as np
import pytest
from scipy import special

from complaints import refused
from distribution_examples import EXAMPLES, normal, samples
from evenhand.distributions import (
    Hurdle,
    Normal,
    Poisson,
    Quantiles,
    Support,
    Transformed,
    Truncated,
    from_records,
    to_records,
)
from evenhand.forecast import Forecast

PERSONS = [example for example in EXAMPLES if (4,) in example.shapes]
OF_EACH_CLASS = {type(example.build((4,))): example for example in PERSONS}

LEVELS = np.concatenate((10.0 ** np.arange(-9, -2), np.linspace(0.002, 0.998, 999)))
"""Levels of the points of comparison, with their mirror images: both tails and the middle."""


def points(batch):
    """Return outcomes of shape (q, n) at which CDFs are compared."""
    return np.concatenate((batch.expand().ppf(LEVELS), batch.expand().ppf(1 - LEVELS)), axis=-1).T


@pytest.mark.parametrize("example", OF_EACH_CLASS.values(), ids=lambda example: example.name)
def test_a_batch_is_rebuilt_from_json(example):
    batch = example.build((4,))
    again = from_records(json.loads(json.dumps(to_records(batch), allow_nan=False)))
    y = points(batch)
    assert again.batch_shape == (4,)
    assert again.outcome_kind is batch.outcome_kind
    for name, left in product(("logcdf", "logsf"), (False, True)):
        found, expected = (getattr(one, name)(y, left=left) for one in (again, batch))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("example", PERSONS[3::8], ids=lambda example: example.name)
def test_a_record_does_not_depend_on_the_other_rows(example):
    batch = example.build((4,))
    for row, record in enumerate(to_records(batch)):
        assert to_records(batch.take([row])) == [record]


def test_rows_of_several_families_are_one_batch():
    parts = [normal((4,)), samples((4,))]
    records = [record for pair in zip(*map(to_records, parts), strict=True) for record in pair]
    batch = from_records(records)
    y = np.linspace(-5, 5, 11)
    for part, rows in zip(parts, (slice(0, None, 2), slice(1, None, 2)), strict=True):
        np.testing.assert_allclose(batch.cdf(y[:, None])[:, rows], part.cdf(y[:, None]), rtol=1e-12)
        np.testing.assert_allclose(batch.ppf(0.3)[rows], part.ppf(0.3), rtol=1e-9)
        np.testing.assert_allclose(batch.mean()[rows], part.mean(), rtol=1e-12)
        np.testing.assert_allclose(batch.crps(1.0)[rows], part.crps(1.0), rtol=1e-9)
        np.testing.assert_allclose(batch.take(rows).std(), part.std(), rtol=1e-12)
    np.testing.assert_allclose(batch.take([3, 0]).ppf(0.3), batch.ppf(0.3)[[3, 0]], rtol=1e-12)


class Shifted(Normal):
    """A family that records do not know."""


def test_what_is_no_plain_batch_of_one_kind_of_the_package_is_refused():
    refused("must be a family of the package.*Shifted", to_records, Shifted([0.0], 1.0))
    base = Forecast.from_normal([0.0, 5.0], [1.0, 2.0]).randomized(0.2, r=[[0.1, 0.6]])
    refused(r"shape \(n,\), got shape \(2, 2\); give one draw per", to_records, base.distribution)
    claims = Hurdle([0.5], Transformed(Normal([0.0], 1.0), Support(low=0.0)))
    records = [*to_records(Poisson([1.0])), *to_records(claims)]
    refused(r"several kinds \(count, hurdle\)", from_records, records)


def test_a_truncation_without_effect_is_left_out():
    far = Truncated(Normal([50.0, 1.0], 1.0), Support(low=0.0))
    assert [record["family"] for record in to_records(far)] == ["normal", "truncated"]
    np.testing.assert_allclose(from_records(to_records(far)).cdf(1.5), far.cdf(1.5), rtol=1e-9)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, r"records\[1\] is not the record .*NoneType"),
        ({"loc": 1.0}, r"records\[1\] is not the record .*'family'"),
        ({"family": "norml"}, r"records\[1\] is not .*family must be one of .* mean 'normal'"),
        ({"family": "normal", "loc": 1.0}, r"records\[1\] is not the record .*'scale'"),
        (
            {"family": "location_scale", "loc": 1.0, "scale": 1.0, "base": {}},
            r"records\[1\] is not the record .*'family'",
        ),
    ],
)
def test_anything_else_is_refused(record, message):
    good = {"family": "poisson", "rate": 2.0}
    refused(message, from_records, [good, record])
    refused("records is empty", from_records, [])


def test_a_record_of_quantiles_takes_few_bytes():
    levels = special.ndtr(np.linspace(-5, 5, 161))
    record = to_records(Quantiles(levels, np.cumsum(np.ones(161))[None] / 7))[0]
    assert len(json.dumps(record)) < 161 * 2 * 25
