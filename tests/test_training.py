"""Networks: architecture, scoring, dropout, independent training, objectives, the default."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from scipy import special, stats
from sklearn.exceptions import ConvergenceWarning

from complaints import refused
from evenhand import InputError
from evenhand.forecasters import MixtureMLPRegressor, PAICRegressor
from evenhand.forecasters.networks import MixtureOutputs, Shape, spread_factor
from evenhand.forecasters.training import (
    Candidate,
    EncodedRows,
    Settings,
    TrainingRun,
    drawn_weights,
    evaluate,
    score,
    split_rows,
    train_best,
)
from forecaster_examples import linear_task

DETERMINISTIC = Shape(n_inputs=3, n_outputs=2, hidden=(8, 8), takes_draw=False, dropout=0.0)


def layered(shape, weights, network, x, r):
    """Forward pass as the paper draws it: the draw is an input of each inner layer too."""
    n_layers = len(shape.hidden) + 1
    for i in range(n_layers):
        kernel, bias = (
            weights[f"{part}_{i}"][network].astype(np.float64) for part in ("kernel", "bias")
        )
        if shape.takes_draw and 0 < i < n_layers - 1:
            x = np.column_stack([x, r])
        x = x @ kernel + bias
        if i < n_layers - 1:
            x = x * special.expit(x) if shape.activation == "silu" else np.where(x > 0, x, 0.01 * x)
    return x


def training_of(shape, rows, settings, n_networks, loss):
    """Training on rows that also stop it, on the CPU and with seed 0."""
    candidate = Candidate(shape, rows, settings)
    return TrainingRun(candidate, n_networks, loss, torch.device("cpu"), 0)


def rows_of(x, y, weight=None):
    """Rows that all networks learn from and are stopped by."""
    of = np.arange(y.size)[None]
    return EncodedRows(x, y, np.ones(y.size) if weight is None else weight, of, of)


def squares(out, y, *_):
    return (out[..., 0] - y) ** 2


@pytest.fixture(scope="module")
def paper_model():
    X, y = linear_task(150)
    return PAICRegressor(max_steps=20, random_state=0).fit(X, y), X, y


def test_default_network_is_the_papers(paper_model):
    model, X, _ = paper_model
    # three layers of 100, the draw joined to the second and third; mean and spread out
    assert model.shape_.layers() == [(X.shape[1], 100), (101, 100), (101, 100), (100, 2)]
    assert model.shape_.dropout == 0.5
    sizes = {name: array.shape for name, array in model.weights_.items()}
    for i, (n_in, n_out) in enumerate(model.shape_.layers()):
        assert sizes.pop(f"kernel_{i}") == (1, n_in, n_out)
        assert sizes.pop(f"bias_{i}") == (1, 1, n_out)
    assert not sizes


@pytest.mark.parametrize("inputs_of_a_block", [1, 700, 10**6])
def test_forecast_is_that_of_a_plain_forward_pass(paper_model, inputs_of_a_block, monkeypatch):
    monkeypatch.setattr("evenhand.forecasters.training.BLOCK_INPUTS", inputs_of_a_block)
    model, X, y = paper_model
    r = np.random.default_rng(1).uniform(size=len(y))
    out = layered(model.shape_, model.weights_, 0, (X - X.mean(axis=0)) / X.std(axis=0), r)
    law = stats.norm(out[:, 0], 5 / (1 + np.exp(-out[:, 1])) + 0.01)
    forecast = model.forecast(X, r)
    np.testing.assert_allclose(forecast.mean(), law.mean(), atol=1e-9)
    np.testing.assert_allclose(forecast.std(), law.std(), atol=1e-9)
    np.testing.assert_allclose(forecast.pit(y), law.cdf(y), atol=1e-9)
    np.testing.assert_allclose(forecast.logpdf(y), law.logpdf(y), atol=1e-9)


def test_mixture_forecast_is_that_of_a_plain_forward_pass():
    X, y = linear_task(120)
    y = 40 + 9 * y
    model = MixtureMLPRegressor(3, 2, hidden=(16, 8), max_steps=20, random_state=0).fit(X, y)
    assert model.shape_.layers() == [(3, 16), (16, 8), (8, 6)]
    x = (X - X.mean(axis=0)) / X.std(axis=0)
    inputs = model.inputs_
    units = (x - inputs.offset) / inputs.unit
    x = 3 * np.arcsinh(np.log1p(inputs.skew * units) / inputs.skew / 3)
    skew = model.outputs_.skew
    cdf = np.zeros(len(y))
    for network in range(3):
        logits, score, raw = np.split(
            layered(model.shape_, model.weights_, network, x, None), 3, axis=-1
        )
        assert ((score > skew.low) & (score < skew.high)).all()
        loc = np.expm1(skew.g * score) / skew.g
        std = np.exp(skew.g * score) * (np.log1p(np.exp(raw)) + 0.002) * model.spread_factor_
        law = stats.norm(model.y_offset_ + model.y_unit_ * loc, model.y_unit_ * std)
        cdf += (special.softmax(logits, axis=-1) * law.cdf(y[:, None])).sum(axis=-1) / 3
    np.testing.assert_allclose(model.forecast(X).pit(y), cdf, atol=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PAICRegressor(hidden=(16, 16), standardize_y=True, max_steps=20, random_state=0),
        lambda: MixtureMLPRegressor(2, 2, hidden=(16,), max_steps=20, random_state=0),
    ],
    ids=["PAICRegressor", "MixtureMLPRegressor"],
)
def test_standardized_outcomes_make_the_forecast_follow_the_unit(make):
    X, y = linear_task(150)
    there = make().fit(X, y).forecast(X, r=0.3)
    # a power of two changes no digit, another unit the last of float32: 1e-4 in 20 steps
    for scale, shift, tolerance in ((2.0**40, 0.0, 1e-12), (30.0, -700.0, 1e-4)):
        here = make().fit(X, shift + scale * y).forecast(X, r=0.3)
        np.testing.assert_allclose((here.mean() - shift) / scale, there.mean(), atol=tolerance)
        np.testing.assert_allclose(here.std() / scale, there.std(), rtol=tolerance)
        np.testing.assert_allclose(here.pit(shift + scale * y), there.pit(y), atol=tolerance)


@pytest.mark.parametrize(("scale", "warned"), [(0.001, True), (1.0, False), (100.0, True)])
def test_outcomes_that_the_papers_spread_cannot_reach_are_warned_about(scale, warned):
    X, y = linear_task(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PAICRegressor(hidden=(4, 4), max_steps=1, random_state=0).fit(X, scale * y)
        model = PAICRegressor(hidden=(4, 4), max_steps=1, standardize_y=True, random_state=0)
        model.fit(X, scale * y)
    assert ["standardize_y=True" in str(warning.message) for warning in caught] == [True] * warned
    assert all(warning.filename == __file__ for warning in caught)


def mask_of(dropout, seed=0, rows=2000):
    """Factors of dropout on the last hidden layer, seen through an identity output."""
    shape = Shape(3, 64, (16, 64, 64), takes_draw=True, dropout=dropout)
    layers = drawn_weights(shape, 2, torch.Generator().manual_seed(1))
    layers[3].copy_(torch.eye(64).expand(2, -1, -1))
    layers[7].zero_()
    x, r = (
        torch.randn((2, rows, 3), generator=torch.Generator().manual_seed(2)),
        torch.full((2, rows), 0.3),
    )
    whole = evaluate(shape, layers, x, r)
    dropped = evaluate(shape, layers, x, r, torch.Generator().manual_seed(seed))
    return np.asarray((dropped / whole).numpy(), dtype=np.float64)


@pytest.mark.parametrize("dropout", [0.5, 0.05])
def test_dropout_zeroes_the_stated_share_before_the_output_only(dropout):
    mask = mask_of(dropout)
    kept = round(256 * (1 - dropout)) / 256
    assert abs(kept - (1 - dropout)) <= 1 / 512
    # units are gone or scaled up: had an earlier layer lost units, other factors would show
    zero = mask == 0
    np.testing.assert_allclose(mask[~zero], 1 / kept, rtol=1e-4)
    # binomial, 5 standard errors: a false alarm of 6e-7 each, over all units and per network
    for part in (zero, zero[0], zero[1]):
        assert abs(part.mean() - (1 - kept)) < 5 * np.sqrt(kept * (1 - kept) / part.size)
    # units, rows and networks are dropped independently: correlations of neighbours, same bound
    for first, second in (
        (zero[0], zero[1]),
        (zero[:, 1:], zero[:, :-1]),
        (zero[..., 1:], zero[..., :-1]),
    ):
        assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 5 / np.sqrt(first.size)


class Replay(TrainingRun):
    """A training in which the rows of each step belong to the network, whoever trains beside it."""

    def __init__(self, rows, names):
        candidate = Candidate(DETERMINISTIC, rows, Settings(0.01, 0.1, 10, 12, 12, 1, 1))
        super().__init__(candidate, 3, self._loss, torch.device("cpu"), 5)
        self.names = torch.tensor(names)
        # the initial networks of these names, in double precision
        self.numbers = torch.arange(len(names))
        self.x, self.y, self.weight = (one.double() for one in (self.x, self.y, self.weight))
        self.parameters = [part[names].detach().double() for part in self.parameters]
        for part in self.parameters:
            part.requires_grad_()
        self.moments = [[part[names].double() for part in both] for both in self.moments]
        self.kept = [part[names].double() for part in self.kept]

    def _loss(self, out, y, _, numbers):
        return (1 + self.names[numbers, None]) * squares(out, y)

    def _next_rows(self):
        rows = torch.randint(30, (3, 10), generator=torch.Generator().manual_seed(self.n_done))
        self.order = rows[self.names[self.numbers]]
        return self.order


def replayed(names, *, first_stops=False):
    """Train for 12 steps; if asked, the first network stops after the sixth."""
    random = np.random.default_rng(5)
    x, y = random.normal(size=(30, 3)), random.normal(size=30)
    training = Replay(rows_of(x, y, random.uniform(0.5, 1.5, size=30)), names)
    for step in range(1, 13):
        training.step()
        if step == 6 and first_stops:
            losses = torch.zeros(len(names))
            losses[0] = torch.inf  # no better than at the start, and patience is 1
            training.validation = lambda: losses  # noqa: B023
            training.check()
    assert training.n_running == len(names) - first_stops
    return training.parameters


def test_a_stack_trains_each_network_as_if_it_were_alone():
    together = replayed([0, 1, 2])
    for network in range(3):
        for whole, part in zip(together, replayed([network]), strict=True):
            torch.testing.assert_close(whole[network : network + 1], part, rtol=1e-9, atol=1e-12)


def test_networks_train_on_as_before_when_another_one_stops():
    untouched, left = replayed([0, 1, 2]), replayed([0, 1, 2], first_stops=True)
    for whole, part in zip(untouched, left, strict=True):
        # moments of the optimizer go with their networks, or the steps after would differ
        torch.testing.assert_close(whole[1:], part, rtol=1e-9, atol=1e-12)


def test_every_network_sees_every_row_once_in_a_pass_in_its_own_order():
    rows = rows_of(np.zeros((40, 3)), np.zeros(40))
    run = training_of(DETERMINISTIC, rows, Settings(0.01, 0.0, 10, 100, 100, 5, 10), 3, squares)
    first, second = (torch.cat([run._next_rows() for _ in range(4)], dim=1) for _ in range(2))
    for order in (*first, *second):
        assert sorted(order.tolist()) == list(range(40))
    assert len({tuple(order.tolist()) for order in (*first, *second)}) == 6


def test_a_step_is_that_of_torch_adamw_on_kernels_and_biases():
    settings = Settings(0.2, 0.3, 10, 4, 4, patience=5, check_every=10, decays_biases=False)
    shape = Shape(3, 1, (8, 8), takes_draw=False, dropout=0.0)
    random = np.random.default_rng(0)
    rows = rows_of(random.normal(size=(10, 3)), random.normal(size=10))
    run = training_of(shape, rows, settings, 2, squares)
    others = [part.detach().clone().requires_grad_() for part in run.parameters]
    groups = [{"params": others[:3]}, {"params": others[3:], "weight_decay": 0.0}]
    peer = torch.optim.AdamW(groups, weight_decay=0.3)
    for _ in range(3):
        run.step()
        # all rows are in each batch, so their order makes no difference
        out = evaluate(shape, others, run.x.expand(2, -1, -1), None)
        squares(out, run.y).mean(dim=-1).sum().backward()
        for group in peer.param_groups:
            group["lr"] = run.learning_rate()
        peer.step()
        peer.zero_grad()
    for mine, theirs in zip(run.parameters, others, strict=True):
        np.testing.assert_allclose(mine.detach(), theirs.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("n", "fraction", "n_networks"), [(200, 0.15, 6), (60, 0.5, 7)])
def test_networks_set_different_rows_aside(n, fraction, n_networks):
    learning, validation = split_rows(n, fraction, n_networks, 0)
    n_held = round(fraction * n)
    assert validation.shape == (n_networks, n_held)
    for kept, held in zip(learning, validation, strict=True):
        assert sorted([*kept, *held]) == list(range(n))
    # shares do not overlap while they fit into the rows, and together cover what they can
    assert len(np.unique(validation)) == min(n_networks * n_held, n)


def test_a_network_learns_from_its_own_rows_and_stops_on_its_own():
    # the outcome is +1 on the rows of the first network and -1 on those of the second
    n = 400
    y = np.repeat([1.0, -1.0], n // 2)
    own = np.arange(n).reshape(2, -1)
    settings = Settings(0.05, 0.0, 32, 200, 200, 200, 200)

    def trained(validation):
        rows = EncodedRows(np.zeros((n, 3)), y, np.ones(n), own, validation)
        candidates = [Candidate(DETERMINISTIC, rows, settings)]
        options = {"device": "cpu", "random_state": 0, "verbose": False}
        return train_best(candidates, 2, squares, **options)[1].result()

    weights, _, losses = trained(own)
    out = score(DETERMINISTIC, weights, np.zeros((1, 3)), None, "cpu")
    np.testing.assert_allclose(out[:, 0, 0], [1.0, -1.0], atol=0.01)
    np.testing.assert_allclose(losses, 0.0, atol=1e-4)
    np.testing.assert_allclose(trained(own[[1, 0]])[2], 4.0, atol=0.1)


def test_too_few_rows_to_split_serve_as_both():
    for part in split_rows(9, 0.15, 6, 0):
        assert part.tolist() == [list(range(9))]


@pytest.fixture
def trainings(monkeypatch):
    """Record the learning and the validation rows of each training of a single network."""
    seen = []

    def used(rows, of):
        return rows_of(rows.x[of], rows.y[of], rows.weight[of])

    def recorded(candidates, *rest, **options):
        rows = candidates[0].rows
        seen.append((used(rows, rows.learning[0]), used(rows, rows.validation[0])))
        return train_best(candidates, *rest, **options)

    monkeypatch.setattr("evenhand.forecasters.training.train_best", recorded)
    return seen


def test_early_stopping_uses_given_rows_or_else_training_rows(trainings):
    X, y = linear_task(100)
    X_val, y_val = linear_task(37, seed=1)
    model = PAICRegressor(hidden=(4, 4), max_steps=1, random_state=0)
    model.fit(X, y)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    (learning, validation), (all_rows, given) = trainings
    assert validation.y.size == 15
    assert sorted([*learning.y, *validation.y]) == sorted(y)
    assert np.array_equal(all_rows.y, y)
    assert np.array_equal(given.y, y_val)
    # encoded as the training rows are
    np.testing.assert_allclose(given.x, (X_val - X.mean(axis=0)) / X.std(axis=0), rtol=1e-12)


def validation_draws(n):
    """Fixed draws of the validation loss: one in each of m cells, shifted from row to row."""
    m = -(-2000 // n)
    rows, cells = np.arange(n)[:, None], np.arange(m)
    return np.asarray((cells + 0.001 + 0.998 * rows / n) / m)


@pytest.mark.parametrize(("alpha", "standardize_y"), [(0.05, False), (0.5, True)])
def test_validation_loss_is_the_papers_objective(alpha, standardize_y):
    X, y = linear_task(200)
    X_val, y_val = linear_task(60, seed=1)
    model = PAICRegressor(
        alpha, hidden=(16, 16), standardize_y=standardize_y, max_steps=60, random_state=0
    )
    model.fit(X, y, X_val=X_val, y_val=y_val)
    r = validation_draws(60)
    forecast = model.forecast(X_val, r)
    log_density = forecast.logpdf(y_val) + np.log(
        y.std() if standardize_y else 1.0
    )  # in the network's unit
    objective = np.mean((1 - alpha) * np.abs(forecast.pit(y_val) - r) - alpha * log_density)
    # training works in float32: 1e-7 relative, and its sums of 2040 terms lose about two digits
    assert model.validation_loss_ == pytest.approx([objective], rel=2e-5, abs=2e-6)
    # those draws stand for all: the average over 2000 draws for each row is within 0.003
    everywhere = (np.arange(2000)[None, :] + 0.5) / 2000
    forecast = model.forecast(X_val, everywhere)
    log_density = forecast.logpdf(y_val) + np.log(y.std() if standardize_y else 1.0)
    average = np.mean((1 - alpha) * np.abs(forecast.pit(y_val) - everywhere) - alpha * log_density)
    assert objective == pytest.approx(average, abs=0.003)


def test_validation_loss_is_weighted(trainings):
    X, y = linear_task(200)
    weight = np.random.default_rng(0).exponential(size=200)
    model = PAICRegressor(0.3, hidden=(16, 16), max_steps=40, random_state=0).fit(X, y, weight)
    (learning, validation), *_ = trainings
    share = dict(zip(y, weight / weight.mean(), strict=True))
    for part in (learning, validation):
        np.testing.assert_allclose(part.weight, [share[value] for value in part.y], rtol=1e-12)
    r = validation_draws(validation.y.size)
    out = score(model.shape_, model.weights_, validation.x, r, "cpu")[0]
    law = stats.norm(out[..., 0], 5 * special.expit(out[..., 1]) + 0.01)
    y_val = validation.y[:, None]
    losses = 0.7 * np.abs(law.cdf(y_val) - r) - 0.3 * law.logpdf(y_val)
    expected = np.average(losses.mean(axis=1), weights=validation.weight)
    assert model.validation_loss_ == pytest.approx([expected], rel=2e-5, abs=2e-6)


def test_each_network_keeps_its_best_step_and_stops_when_its_patience_is_up(monkeypatch):
    X, y = linear_task(60)
    history = {}
    judged = TrainingRun.validation

    def recorded(self):
        values = judged(self)
        for place, network in enumerate(self.numbers.tolist()):
            named = zip(self.shape.parts(), self.parameters, strict=True)
            kept = {name: one[place].detach().numpy().copy() for name, one in named}
            history.setdefault(network, []).append((float(values[place]), kept))
        return values

    monkeypatch.setattr(TrainingRun, "validation", recorded)
    params = {"max_steps": 200, "check_every": 5, "patience": 3, "random_state": 0}
    params |= {"hidden": (32, 32), "learning_rate": 0.02, "dropout": 0.2, "weight_decay": 0.1}
    model = MixtureMLPRegressor(6, 2, **params).fit(X, y)
    assert len(set(model.n_steps_)) > 2  # networks do stop apart
    for network, checks in history.items():
        losses = [loss for loss, _ in checks]
        best = int(np.argmin(losses))
        assert len(checks) == min(best + 1 + 3, 40)
        assert model.n_steps_[network] == 5 * len(checks)
        assert model.validation_loss_[network] == losses[best]
        for name, array in checks[best][1].items():
            assert np.array_equal(model.weights_[name][network], array), name


def test_path_gives_one_model_for_each_alpha_in_order():
    X, y = linear_task(200)
    X_val, y_val = linear_task(60, seed=1)
    alphas = [0.3, 0.02, 1.0, 0.3]
    params = {"hidden": (32, 32), "patience": 3, "learning_rate": 0.02}
    params |= {"max_steps": 300}
    models = PAICRegressor.path(X, y, alphas, X_val=X_val, y_val=y_val, **params, random_state=0)
    assert [model.alpha for model in models] == alphas
    assert len({float(model.n_steps_[0]) for model in models}) > 1
    r = validation_draws(60)
    for model in models:
        assert model.n_steps_.shape == model.validation_loss_.shape == (1,)
        assert model.get_params()["max_steps"] == 300
    # models of one alpha differ by chance, and sharper ones are further from their draws
    assert not np.array_equal(models[0].weights_["bias_0"], models[3].weights_["bias_0"])
    errors = [float(np.abs(model.forecast(X_val, r).pit(y_val) - r).mean()) for model in models]
    assert errors[1] < errors[0] < errors[2]


def test_parameters_out_of_range_are_named():
    X, y = linear_task(40)
    for name, value in (
        *(("max_steps", 0), ("dropout", 1.0), ("dropout", None), ("hidden", (16, 2.5))),
        *(("device", "tpu"), ("alpha", 0.0)),
    ):
        params = {"hidden": (4, 4), "max_steps": 1, name: value}
        refused(rf"^{name}.* must ", PAICRegressor(**params).fit, X, y)


def test_global_generators_and_the_number_of_threads_are_left_alone():
    X, y = linear_task(60)
    before = torch.random.get_rng_state(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    outer = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        PAICRegressor(hidden=(4, 4), max_steps=2, random_state=0).fit(X, y).predict(X)
        assert torch.get_num_threads() == 2
        with pytest.raises(InputError, match=r"training diverged: .* lower learning_rate"):
            PAICRegressor(hidden=(4, 4), max_steps=2, learning_rate=1e30, random_state=0).fit(X, y)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(outer)
    assert pickle.dumps(np.random.get_state()) == before[1]  # noqa: NPY002
    assert torch.equal(before[0], torch.random.get_rng_state())


GIVEN = {"n_members": 2, "n_components": 2, "hidden": (8,), "random_state": 0, "dropout": 0.0}


def digits_task(n, seed):
    """Two digits, a mean for each pair of them that no pattern explains, and noise of 0.2."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, size=(n, 2))
    means = 1.5 * np.random.default_rng(7).normal(size=(8, 8))
    return X.astype(np.float64), means[X[:, 0], X[:, 1]] + 0.2 * rng.normal(size=n)


def test_a_training_that_still_improves_is_made_longer_or_warned_about():
    X, y = digits_task(400, 0)
    fresh, outcomes = digits_task(1000, 1)
    params = {"n_members": 1, "dropout": 0.0, "random_state": 0}
    # 200 passes, as many as such a table has at first; the step size has decayed at their end
    message = "longer than 1000 steps; raise max_steps"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        short = MixtureMLPRegressor(**params, max_steps=1000).fit(X, y)
    assert caught[0].filename == __file__
    assert short.n_steps_.max() <= 1000
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        long = MixtureMLPRegressor(**params).fit(X, y)
    assert 1000 < long.n_steps_.max() <= 5000
    # the CRPS of the true normal is 0.2 / sqrt(pi) = 0.113
    scores = [model.forecast(fresh).crps(outcomes).mean() for model in (short, long)]
    assert scores[1] < 0.6 * scores[0]
    # where networks have learned enough by then, there are 2 steps of 64 rows in each of 200 passes
    X, y = linear_task(200)
    with warnings.catch_warnings(action="error", category=ConvergenceWarning):
        assert MixtureMLPRegressor(**GIVEN).fit(X, y).n_steps_.max() <= 400


def test_weak_regularization_is_chosen_for_outcomes_without_noise():
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = X[:, 0] + X[:, 1]
    model = MixtureMLPRegressor(2, 2, hidden=(16, 16), max_steps=200, random_state=0).fit(X, y)
    assert model.strength_ == (0.0, 0.01)


def test_spread_factor_allows_for_the_disagreement_of_members():
    rng = np.random.default_rng(0)
    n, m, between = 40_000, 4, 0.3
    # the truth is a standard normal; members' means err independently, with variance 0.3
    y = rng.normal(size=n)
    loc = np.sqrt(between) * rng.normal(size=(m, n, 1))
    one = np.ones((m, n, 1))
    held = np.arange(n) % m == np.arange(m)[:, None]
    found = spread_factor(one, loc, one, y, np.ones(n), held)
    # the ensemble's variance, t^2 + 0.3 * 3 / 4, should be that of its error, 1 + 0.3 / 4; a member
    # errs with variance 1.3, so that t^2 = (1.3 - c) / (1 + c) with c = 0.225
    assert found == pytest.approx(np.sqrt((1.3 - 0.225) / 1.225), abs=0.02)


def test_row_losses_of_a_mixture_are_those_of_the_formula():
    y = np.array([0.3, -1.2, 2.5, 0.0])
    out = np.random.default_rng(1).normal(size=(2, y.size, 9))
    logits, loc, raw = np.split(out, 3, axis=-1)
    density = stats.norm(loc, np.log1p(np.exp(raw)) + 0.002).pdf(y[:, None])
    expected = -np.log((special.softmax(logits, axis=-1) * density).sum(axis=-1))
    given = torch.as_tensor(out), torch.as_tensor(np.tile(y, (2, 1)))
    rows = MixtureOutputs().loss(*given).numpy()
    np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-12)
