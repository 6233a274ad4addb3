"""Losses and decisions against closed forms, densities and simulated outcomes."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from complaints import refused
from evenhand import audit_pit, decisions
from evenhand.audits import Search
from evenhand.decisions import BayesDecision, StepLoss
from evenhand.distributions import NormalMixture
from evenhand.draws import jittered
from evenhand.forecast import Forecast
from evenhand.search import GroupSearch
from planted_groups import planted_table
from quadrature import panels
from repeats import most_failures, repeats, statistical

KINK = 2e-4  # of a loss with slope 1, in standard deviations: the documented accuracy, twice
LOAN = StepLoss([0.5], [4.0, 0.0])

MEAN, STD = np.array([-0.3, 0.4, 2.0]), np.array([0.5, 1.0, 1.7])


def normals():
    return Forecast.from_normal(MEAN, STD)


def mixtures():
    return Forecast(
        NormalMixture([0.3, 0.7], [[-1.0, 1.0], [0.0, 3.0], [0.5, 0.6]], np.full((3, 2), 0.6))
    )


def drawn(shape):
    people = slice(0, shape[0])
    r = np.array([0.9, 0.2, 0.55]) if len(shape) == 1 else jittered(*shape, random_state=3)
    return Forecast.from_normal(MEAN[people], STD[people]).randomized(0.4, "entropic", r=r)


FORECASTS = {
    "normal": normals(),
    "mixture": mixtures(),
    "one draw each": drawn((3,)),
    "one person": drawn((1, 4)),
    "draws": drawn((3, 4)),
}


def density_rule(forecast, edges):
    """Outcomes between `edges`, and their weights under each forecast: batch by outcomes."""
    y, weights = panels(edges)
    density = np.exp(forecast.distribution.expand().logpdf(y)) * weights
    np.testing.assert_allclose(density.sum(axis=-1), 1, atol=1e-6)
    return y, density


@pytest.fixture(params=FORECASTS)
def forecast(request):
    return FORECASTS[request.param]


def test_cuts_and_values_may_differ_between_people():
    # a cut belongs to what is above it
    below = np.nextafter(0, -1)
    np.testing.assert_array_equal(StepLoss([0.0, 1.0], [5.0, 3.0, 2.0])([below, 0, 1]), [5, 3, 2])
    own_cuts = StepLoss([[0.0], [1.0]], [2.0, 7.0])
    own_values = StepLoss([0.0], [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(own_cuts([0.5, 0.5]), [7, 2])
    np.testing.assert_array_equal(own_cuts([[-1.0, 0.5], [0.5, 1.0]]), [[2, 7], [2, 7]])
    np.testing.assert_array_equal(own_values([[-1.0, 0.5], [-1.0, 0.5]]), [[1, 2], [3, 4]])
    alone = [
        StepLoss([c], [2.0, 7.0]).expected(normals()[[i]])[0] for i, c in enumerate((0.0, 1.0))
    ]
    np.testing.assert_allclose(own_cuts.expected(normals()[[0, 1]]), alone, rtol=1e-15)


@pytest.mark.parametrize("per_person", [False, True])
def test_expected_step_losses_equal_integrals_of_the_density(forecast, per_person):
    n = len(forecast)
    cuts, values = np.array([-0.5, 0.5, 1.75]), np.array([2.0, 0.0, 3.0, 1.0])
    loss = (
        StepLoss(np.tile(cuts, (n, 1)), values + np.arange(n)[:, None])
        if per_person
        else StepLoss(cuts, values)
    )
    y, density = density_rule(
        forecast, np.arange(-1280, 1281) / 64
    )  # the cuts are edges: no panel holds a jump
    batch = forecast.distribution.batch_shape
    at_y = loss(np.broadcast_to(y, (n, y.size)))
    at_y = at_y[:, None, :] if len(batch) == 2 else at_y
    found = loss.expected(forecast)
    assert found.shape == batch
    np.testing.assert_allclose(found, (at_y * density).sum(axis=-1), atol=1e-5)


@pytest.mark.parametrize("cut", [-11.4, -37.0])
def test_far_tails_keep_their_digits(cut):
    tail = np.exp(stats.norm.logcdf(cut))  # about 2e-30 and 6e-300
    below, above = StepLoss([cut], [3.0, 0.0]), StepLoss([-cut], [0.0, 3.0])
    standard = Forecast.from_normal([0.0], [1.0])
    np.testing.assert_allclose(below.expected(standard), 3 * tail, rtol=1e-12)
    np.testing.assert_allclose(above.expected(standard), 3 * tail, rtol=1e-12)
    rising = StepLoss([-cut, -cut + 1], [0.0, 0.3, 0.9])
    exact = 0.3 * tail + 0.6 * np.exp(stats.norm.logcdf(cut - 1))
    np.testing.assert_allclose(rising.expected(standard), exact, rtol=1e-12)


def pinball(y, a, level=0.8):
    return np.maximum(level * (y - a), (1 - level) * (a - y))


def expected_excess(mean, std, a):
    z = (mean - a) / std
    return np.asarray(std * stats.norm.pdf(z) + (mean - a) * stats.norm.cdf(z))


ACTIONS = (-0.5, 0.6, 1.5)
CLOSED_FORMS = {
    "quadratic": (lambda y, a: (y - a) ** 2, lambda a: STD**2 + (MEAN - a) ** 2, 1e-9),
    "exponential": (
        lambda y, a: np.exp(a * y),
        lambda a: np.exp(a * MEAN + (a * STD) ** 2 / 2),
        1e-9,
    ),
    "pinball": (
        pinball,
        lambda a: 0.8 * expected_excess(MEAN, STD, a) + 0.2 * expected_excess(-MEAN, STD, -a),
        KINK * STD.max(),
    ),
    "absolute": (
        lambda y, a: np.abs(y - a),
        lambda a: expected_excess(MEAN, STD, a) + expected_excess(-MEAN, STD, -a),
        2 * KINK * STD.max(),
    ),
}
"""Losses, their means under the three normals, and the accuracy that the documentation leads to
expect."""


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_expected_losses_under_normals_are_the_closed_forms(name):
    loss, closed, tolerance = CLOSED_FORMS[name]
    found = BayesDecision(ACTIONS, loss).expected_loss(normals())
    # scores beyond 8 hold ndtr(1.5 * 1.7 - 8) = 2.5e-8 of the mean of the steepest exponential
    expected = np.column_stack([closed(a) for a in ACTIONS])
    np.testing.assert_allclose(found, expected, rtol=5e-8, atol=tolerance)


@pytest.mark.parametrize("as_table", [False, True])
def test_functions_may_depend_on_people(as_table):
    x = np.array([0.0, 1.0, -2.0])
    goals = pd.DataFrame({"goal": x}, index=[9, 9, 4]) if as_table else x

    def miss(y, rows):
        return np.asarray((y - np.asarray(rows).reshape(-1, 1)) ** 2)

    decision = BayesDecision(["own"], {"own": miss})
    by_action = BayesDecision(["own"], lambda y, action, rows: miss(y, rows))
    exact = (MEAN - x) ** 2 + STD**2
    np.testing.assert_allclose(decision.expected_loss(normals(), goals)[:, 0], exact, rtol=1e-9)
    np.testing.assert_allclose(by_action.expected_loss(normals(), goals)[:, 0], exact, rtol=1e-9)
    randomized = FORECASTS["draws"]
    exact = (randomized.mean() - x[:, None]) ** 2 + randomized.std() ** 2
    np.testing.assert_allclose(decision.expected_loss(randomized, goals)[..., 0], exact, rtol=5e-3)
    made = decision.decide(randomized, goals)
    realized = decision.realized_loss(made, [1.0, 3.0, 5.0], goals)
    np.testing.assert_array_equal(realized, np.broadcast_to([[1.0], [4.0], [49.0]], (3, 4)))


@pytest.mark.parametrize("key", ["normal", "draws"])
def test_blocks_of_people_give_what_one_piece_gives(key, monkeypatch):
    x = np.array([0.5, -1.0, 2.0])
    decision = BayesDecision([0.0, 1.0], lambda y, a, rows: np.exp(0.3 * (y - a + rows[:, None])))
    outcomes = np.linspace(-2, 2, 9)
    whole, ways = decision.expected_loss(FORECASTS[key], x), decision.check_loss(outcomes, x)
    monkeypatch.setattr(decisions, "BLOCK_NUMBERS", 1)
    np.testing.assert_allclose(decision.expected_loss(FORECASTS[key], x), whole, rtol=1e-14)
    np.testing.assert_array_equal(decision.check_loss(outcomes, x), ways)


def test_of_equally_good_actions_the_first_is_taken():
    for actions in (("a", "b", "c"), ("c", "b", "a")):
        made = BayesDecision(
            actions, {"a": 1.0, "b": 1.0, "c": StepLoss([0.0], [1.0, 1.0])}
        ).decide(normals())
        assert made.index.tolist() == [0, 0, 0]
        assert made.chosen.tolist() == [actions[0]] * 3


def test_realized_losses_are_those_of_the_chosen_actions(forecast):
    n = len(forecast)
    y = np.array([-1.0, 0.5, 2.0])[:n]
    decision = BayesDecision(("step", "square"), {"step": LOAN, "square": lambda y: (y - 1) ** 2})
    made = decision.decide(forecast)
    found = decision.realized_loss(made, y)
    for place, action in np.ndenumerate(made.index):
        i = place[0]
        assert found[place] == ((y[i] - 1) ** 2 if action else 4.0 * (y[i] < 0.5))


def _one(loss):
    return BayesDecision(["a"], {"a": loss})


def test_what_does_not_fit_is_refused_in_one_line():
    refused("cuts .*increasing.*sort", StepLoss, [1.0, 0.0], [1.0, 2.0, 3.0])
    refused("cuts and values.* rows.* 3 and 2", StepLoss, [[0.0]] * 3, [[1.0, 2.0]] * 2)
    refused(r"actions .*duplicates.* \['a', 'a'\]", BayesDecision, ["a", "a"], {"a": 1.0})
    refused(r"loss .* actions \['a', 'b'\], got \['a'\]", BayesDecision, ["a", "b"], {"a": 1.0})
    endless = _one(lambda y: np.where(y < 1, y, np.inf))
    refused("finite.* inf at y = 2", endless.check_loss, [0.0, 2.0])
    made = _one(1.0).decide(normals())
    refused(r"y .*per row \(3\).*\(1,\)", _one(1.0).realized_loss, made, [1.0])
    negative, bent = _one(lambda y: y), _one(lambda y: np.abs(y - 1))
    refused("'a' .*at least 0.* -3 at y = -3; add .*constant", negative.check_loss, [1, -3])
    refused("'a' .*monotone.* y = 1", bent.check_loss, range(5))


def test_directions_of_losses_are_reported_by_action():
    losses = {
        "up": np.exp,
        "down": lambda y: np.exp(-y),
        "flat": 2.0,
        "const": lambda y: np.full(y.shape, 0.1) * 3,
    }
    y = np.random.default_rng(0).normal(size=50)
    assert BayesDecision(list(losses), losses).check_loss(y).tolist() == [[1, -1, 0, 0]]
    for values, way in (([1.0, 1.0, 4.0], 1), ([4.0, 1.0, 1.0], -1)):
        assert BayesDecision(["a"], {"a": StepLoss([0.0, 1.0], values)}).check_loss([0.0]) == way
    own = StepLoss([0.0], [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    wanted = [[1, 1], [-1, 1], [0, 1]]
    assert BayesDecision(["own", "up"], {"own": own, "up": np.exp}).check_loss(y).tolist() == wanted


# --- learned groups of several masses: decisions, joint lower bounds, level of the test


def test_p_values_of_learned_groups_are_adjusted_for_their_number_and_share():
    X, pit, _ = planted_table("pair", 2)
    found = audit_pit(pit, X=X, search=Search(learned_masses=(0.1, 0.2, 0.5)), random_state=0)
    p = found.learned["p_value"].to_numpy()
    steps = np.maximum.accumulate(np.sort(p) * [3, 2, 1])[np.argsort(np.argsort(p))]
    # one point of five, where everyone has that of groups by the forecast, which is not known
    assert found.family.shares["learned"] == pytest.approx(0.01)
    np.testing.assert_allclose(found.learned["p_adjusted"], np.minimum(5 * steps, 1), rtol=1e-9)
    assert (found.learned["off"] == (found.learned["p_adjusted"] < 0.05)).all()
    assert found.learned["off"].any()


def test_the_bounds_of_an_audit_hold_together():
    X, pit, _ = planted_table("pair", 2)
    each, joint = (GroupSearch(pit, X, random_state=0) for _ in range(2))
    own = each.find(0.2, confidence=1 - 0.05 / 3)
    shared = joint.find(0.2, confidence=0.95, n_bounds=3)
    assert shared.low == pytest.approx(own.low, rel=1e-9)
    assert shared.low > 0
    assert shared.confidence == 0.95
    assert shared.low < GroupSearch(pit, X, random_state=0).find(0.2).low
    table = audit_pit(pit, X=X, search=Search(learned_masses=(0.2, 0.5)), random_state=0).learned
    alone = audit_pit(pit, X=X, search=Search(learned_masses=(0.2,)), random_state=0).learned
    assert 0 < table["error_low"][0] < alone["error_low"][0]


@statistical
@pytest.mark.parametrize("kind", ["few rows", "categories", "draws", "ties"])
def test_p_values_of_hard_calibrated_tables_are_at_level(kind):
    """Small tables, many categories, draws, ties; levels 1%, 5%, 25%; false alarm 1e-6 each."""
    n_sets = repeats(400)
    masses = (0.2, 0.5) if kind == "few rows" else (0.1, 0.2, 0.5)
    p = np.empty((n_sets, len(masses)))
    for seed in range(n_sets):
        random = np.random.default_rng([seed, 17])
        n = 200 if kind == "few rows" else 400
        pit = random.random((n, 1))
        if kind == "ties":
            # the 21 values 0, 1/20, ..., 1 with the probabilities of a rounded uniform variable
            pit = np.round(20 * pit) / 20
        if kind == "draws":
            # one person's draws are dependent, each uniform
            pit = (pit + random.random() + np.arange(8) / 8) % 1
        levels = 3 + 2 * np.arange(6)
        X = pd.DataFrame(random.integers(0, levels, size=(n, 6)).astype(str))
        X.columns = [f"c{j}" for j in range(6)]
        search = GroupSearch(pit, X, random_state=random)
        p[seed] = [search.find(mass, confidence=0.999).p_value for mass in masses]
    for level in (0.01, 0.05, 0.25):
        assert ((p < level).sum(axis=0) <= most_failures(n_sets, level)).all()
