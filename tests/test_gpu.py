"""Networks on a GPU, and on the device "meta", which shows what is made on another one."""

import pickle

import numpy as np
import pytest
import torch

import evenhand
from complaints import refused
from evenhand import InputError, MixtureMLPRegressor, PAICRegressor, RandomizedRegressor

HAS_GPU = torch.cuda.is_available()
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device, and torch finds none")
needs_none = pytest.mark.skipif(HAS_GPU, reason="is about machines without a CUDA device")

MAKERS = {
    "paic": lambda **params: PAICRegressor(
        0.2, hidden=(16, 16), max_steps=100, random_state=0, **params
    ),
    "mixture": lambda **params: MixtureMLPRegressor(
        2, 2, hidden=(16,), max_steps=100, random_state=0, **params
    ),
}
every_network = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def task(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.5 * rng.normal(size=n)


def pits(model, X, y):
    return np.asarray(model.forecast(X, [[0.1, 0.5, 0.8]]).pit(y))


@every_network
def test_nothing_in_a_training_is_made_on_a_device_by_default(make):
    X, y = task()
    plain = make(device="cpu").fit(X, y)
    # a tensor made without a device would hold no numbers, and could not be mixed
    with torch.device("meta"):
        same = make(device="cpu").fit(X, y)
        found = pits(same, X, y)
    assert all(np.array_equal(plain.weights_[name], array) for name, array in same.weights_.items())
    np.testing.assert_array_equal(found, pits(plain, X, y))


@needs_none
def test_errors_of_a_cuda_device_are_input_errors_with_the_remedy(monkeypatch):
    model = MixtureMLPRegressor(n_members=1, hidden=(4,), max_steps=2).fit(*task(40))

    def lost(*arguments):
        raise RuntimeError("CUDA error: device is lost. Compile with X.\nmore lines")

    monkeypatch.setattr("evenhand.forecasters.training.evaluate", lost)
    with pytest.raises(RuntimeError, match="CUDA error"):  # on the CPU it is a fault of ours
        model.forecast(task(3)[0])
    monkeypatch.setattr(
        "evenhand.forecasters.training.pick_device", lambda device: torch.device("meta")
    )
    refused(r"^.*device is lost\); use device='cpu'[^\n]*\Z", model.forecast, task(3)[0])


@needs_none
def test_a_device_that_is_not_there_is_refused_with_what_to_do(tmp_path):
    X, y = task(60)
    message = r"^device .*'cuda'.*no CUDA device; set it to 'auto' or 'cpu'"
    with pytest.raises(InputError, match=message):
        PAICRegressor(hidden=(4, 4), device="cuda").fit(X, y)
    model = MAKERS["mixture"](device="cpu").set_params(max_steps=2).fit(X, y)
    wrapped = RandomizedRegressor(model, 0.2, random_state=0).fit(X, y)
    expected = pits(model, X, y), pits(wrapped, X, y)
    # as they come from a machine with a GPU
    model.device = wrapped.estimator_.device = "cuda"
    for fitted, name in ((model, "plain"), (wrapped, "wrapped")):
        evenhand.save(fitted, tmp_path / name)
    alone, inside = evenhand.load(tmp_path / "plain"), evenhand.load(tmp_path / "wrapped")
    for fitted in (alone, inside):
        refused(r"model\.device = 'auto' .*model\.estimator_\.device", fitted.forecast, X, 0.5)
    alone.device = inside.estimator_.device = "auto"
    np.testing.assert_allclose(pits(alone, X, y), expected[0], rtol=1e-12)
    np.testing.assert_allclose(pits(inside, X, y), expected[1], rtol=1e-12)


def test_too_little_memory_is_said_in_one_line(monkeypatch):
    X, y = task(60)
    model = PAICRegressor(hidden=(4, 4), max_steps=2, device="cpu", random_state=0).fit(X, y)

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nmore lines")

    monkeypatch.setattr("evenhand.forecasters.training.evaluate", full)
    for call, remedy in (
        (lambda: model.forecast(X, 0.5), "predict fewer rows at once"),
        (lambda: PAICRegressor(hidden=(4, 4), device="cpu").fit(X, y), "a smaller batch_size"),
    ):
        refused(rf"^.*too little free memory.*{remedy}[^\n]*\Z", call)


@needs_gpu
@every_network
def test_training_on_a_gpu_ends_where_training_on_the_cpu_ends(make):
    X, y = task(2000)
    X_val, y_val = task(1000, seed=1)
    losses = [
        make(device=d).fit(X, y, X_val=X_val, y_val=y_val).validation_loss_.mean()
        for d in ("cpu", "cuda")
    ]
    # batches and dropout differ by chance: two seeds of the CPU lie within 0.02
    assert losses[1] == pytest.approx(losses[0], abs=0.08)


@needs_gpu
@every_network
def test_a_model_of_the_gpu_is_saved_loaded_and_pickled_and_scores_where_there_is_none(
    make, tmp_path, monkeypatch
):
    X, y = task()
    model = make(device="cuda").fit(X, y)
    assert all(isinstance(array, np.ndarray) for array in model.weights_.values())
    evenhand.save(model, tmp_path / "model")
    for again in (evenhand.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.device == "cuda"
        np.testing.assert_allclose(pits(again, X, y), pits(model, X, y), rtol=1e-12)
        again.device = "cpu"
        np.testing.assert_allclose(pits(again, X, y), pits(model, X, y), rtol=1e-9)
    expected, model.device = pits(model, X, y), "auto"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    np.testing.assert_allclose(pits(model, X, y), expected, rtol=1e-9)


@needs_gpu
def test_random_numbers_of_the_gpu_follow_the_seed_and_leave_the_callers_alone():
    X, y = task()
    torch.cuda.manual_seed(5)
    before = torch.cuda.get_rng_state()
    first, again = (MAKERS["paic"](device="cuda").fit(X, y) for _ in range(2))
    assert torch.equal(torch.cuda.get_rng_state(), before)
    for name, array in first.weights_.items():
        np.testing.assert_allclose(again.weights_[name], array, rtol=1e-4, atol=1e-5)
