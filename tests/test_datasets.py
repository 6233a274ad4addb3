import numpy as np

from evenhand.datasets import make_doses


def test_generated_doses_follow_their_truth():
    data = make_doses(20_000, random_state=3)
    z = (data.y - data.truth["mean"]) / data.truth["std"]
    # five standard errors, about six in ten million; rounding to 0.1 mg moves variances by 1e-4
    assert abs(z.mean()) < 5 / np.sqrt(20_000)
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / 20_000)
    assert abs(data.truth["variant"].mean() - 0.2) < 5 * 0.4 / np.sqrt(20_000)
    assert list(data.X.columns) == ["age", "sex", "weight", "kidney", "drugs", "smoker", "clinic"]
    assert not set(data.truth.columns) & set(data.X.columns)


def test_the_trial_enrolls_no_women_over_60_and_the_clinics_do():
    for cohort, most in (("trial", 0.0), ("clinics", 0.3)):
        for n in (1, 3000):
            data = make_doses(n, cohort=cohort, random_state=0)
            older = (data.X["sex"] == "woman") & (data.X["age"] > 60)
            assert len(data.X) == len(data.y) == len(data.truth) == n
            assert older.mean() <= most
            assert list(data.X.index) == list(range(n))
    assert older.mean() > 0.15


def test_no_column_shows_the_variant():
    data = make_doses(20_000, random_state=5)
    numbers = data.X.select_dtypes("number").assign(woman=data.X["sex"] == "woman")
    for name, column in numbers.items():
        correlation = np.corrcoef(column, data.truth["variant"])[0, 1]
        assert abs(correlation) < 5 / np.sqrt(20_000), name
