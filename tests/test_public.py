"""What people import: it is all there, documented, and cheap until it is used."""

import importlib
import importlib.metadata
import inspect
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand

ROOMS = [name for name in evenhand.__all__ if inspect.ismodule(getattr(evenhand, name))]
NAMES = [name for name in evenhand.__all__ if name not in ROOMS]
# handed to people or raised, never called by them
NOT_CALLED = {
    *("Audit", "Certificate", "DiscreteOutcomeWarning", "InputError", "MissingExtraError"),
    "UnseenValuesWarning",
}


def fresh(code, folder=None):
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder
    ).stdout


def public(room):
    module = importlib.import_module(f"evenhand.{room}")
    return [(name, getattr(module, name)) for name in module.__all__]


def test_every_public_name_resolves():
    for name in NAMES:
        assert getattr(evenhand, name).__name__ == name


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_are_reached_as_attributes_and_all_their_names_resolve(room):
    module = getattr(evenhand, room)
    assert module is importlib.import_module(f"evenhand.{room}")
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__)
    for name, _ in public(room):
        assert not name.startswith("_")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"evenhand.*forcast"):
        evenhand.forcast  # noqa: B018
    with pytest.raises(ImportError, match="forcast"):
        exec("from evenhand import forcast")


COMMAND = """
import evenhand.cli
sys.argv = ["evenhand", *{!r}.split()]
try:
    evenhand.cli.main()
except SystemExit as end:
    assert not end.code
"""
MODEL = """
import numpy as np
from evenhand import Forecast, RandomizedRegressor, audit
from sklearn.linear_model import Ridge
X = np.random.default_rng(0).normal(size=(200, 2))
y = X[:, 0] + np.random.default_rng(1).normal(size=200)
model = RandomizedRegressor(Ridge(), link="laplace").fit(X, y)
audit(model, X, y, random_state=0).summary()
"""
STORED = """
assert not {"skops", "typer", "matplotlib", "jinja2"} & sys.modules.keys()
import evenhand
evenhand.save(model, "m")
evenhand.load("m").predict(X)
"""
PAGE = f"""
sys.path.insert(0, {str(Path(__file__).parent)!r})
import evenhand.figures as figures, evenhand.report
from browser.report_examples import randomized, made
evenhand.report.audit_html(made(randomized()))
"""
DRAWING = """
assert "matplotlib" not in sys.modules
figures.plot_calibration([0.2, 0.4]).figure.canvas.draw()
"""
AUDIT = COMMAND.format("audit t.csv --forecast mean=m,std=s --target y --out out.html")

NOT_LOADED = {
    "import": (
        "import evenhand",
        "torch sklearn scipy pandas pyarrow numpy matplotlib typer rich jinja2 skops",
    ),
    # of decision logs all names are there without what opens one
    "rooms": (
        "import evenhand.forecasters, evenhand.audits\nfrom evenhand.service import *",
        "lifelines sksurv sqlalchemy psycopg",
    ),
    "no network of ours, stored": (f"{MODEL}{STORED}", "torch dask"),
    "help": (COMMAND.format("--help"), "torch sklearn scipy pandas pyarrow"),
    "audit": (AUDIT, "scipy.stats sklearn matplotlib torch lightgbm skops dask"),
    "page and drawing": (f"{PAGE}{DRAWING}", "matplotlib.pyplot"),
}
"""Code, and what it does not need."""


@pytest.mark.parametrize("case", NOT_LOADED)
def test_no_library_is_loaded_that_is_not_used(case, tmp_path):
    # 99 rows: from 100 rows with features on, models of scikit-learn learn groups
    random = np.random.default_rng(0)
    columns = {f"x{j}": random.normal(size=99) for j in range(3)}
    mean = random.normal(size=99)
    table = pd.DataFrame(columns | {"m": mean, "s": 1.0, "y": mean + random.normal(size=99)})
    table.to_csv(tmp_path / "t.csv", index=False)
    code, heavy = NOT_LOADED[case]
    found = f"print([name for name in {heavy.split()} if name in sys.modules])"
    assert fresh(f"import sys\n{code}\n{found}", tmp_path).splitlines()[-1] == "[]"
    assert case != "audit" or (tmp_path / "out.html").stat().st_size > 10_000


@pytest.mark.parametrize("name", NAMES)
def test_public_names_are_documented_with_an_example(name):
    found = getattr(evenhand, name)
    assert found.__doc__
    assert found.__doc__.strip()[0].isupper()
    if name not in NOT_CALLED:
        assert "Examples\n--------\n>>> " in inspect.cleandoc(found.__doc__)


@pytest.mark.parametrize("name", sorted(set(NAMES) - NOT_CALLED))
def test_parameters_are_documented(name):
    found = getattr(evenhand, name)
    section = inspect.cleandoc(found.__doc__).partition("Parameters\n----------\n")[2]
    for parameter in inspect.signature(found).parameters:
        assert parameter in section, f"{name}: {parameter} is not described"


# fields of results, which keep what was handed in
RESULTS = {
    *("evenhand.Audit.__init__", "evenhand.Certificate.__init__"),
    *("calibration.PITCounts.__init__", "certificates.Certificate.__init__"),
    *("certificates.Unions.__init__", "datasets.Dataset.__init__"),
    "decisions.LossGuarantee.__init__",
}
# outcomes come first, as losses need not depend on anything else
LOSSES = (
    *("decisions.BayesDecision.check_loss", "decisions.BayesDecision.decide"),
    *("decisions.BayesDecision.expected_loss", "decisions.BayesDecision.realized_loss"),
    "decisions.loss_guarantee",
)


def signatures():
    found = {f"evenhand.{name}": getattr(evenhand, name) for name in NAMES}
    for room in ROOMS:
        found |= {f"{room}.{name}": value for name, value in public(room)}
    callables = []
    for name, value in found.items():
        if inspect.isfunction(value):
            callables.append((name, value))
        elif inspect.isclass(value):
            callables += [
                (f"{name}.{method}", member)
                for method, member in inspect.getmembers(value, callable)
                if (method == "__init__" or not method.startswith("_"))
                and (getattr(member, "__module__", None) or "").startswith("evenhand")
            ]
    return [(name, inspect.signature(value)) for name, value in callables]


def test_the_same_parameter_has_the_same_name_order_and_default_everywhere():
    for name, signature in signatures():
        given = signature.parameters
        assert not {"x", "df", "data"} & set(given), name
        if {"X", "y"} <= set(given) and name not in LOSSES:
            assert list(given).index("X") < list(given).index("y"), name
        for parameter in ("sample_weight", "cluster"):
            if parameter in given and name != "draws.one_row_each":
                assert given[parameter].default is None, name
        if name in RESULTS:
            continue
        assert not {"seed", "rng", "random", "generator"} & set(given), name
        assert "random_state" not in given or given["random_state"].default is None, name
        assert "groups" not in given or not given["groups"].default, name


TESTS = Path(__file__).parent
HOUSE = Path(evenhand.__file__).parent


def test_each_planted_fault_has_one_place_in_the_package_and_its_tests():
    tool = TESTS.parent / "tools" / "plant_faults.py"
    if not tool.exists():
        pytest.skip("the tools are not here")
    plan = runpy.run_path(str(tool))["FAULTS"]
    names = [fault.name for fault in plan]
    assert len(plan) >= 140
    assert len(set(names)) == len(names)
    # wherever the code of a fault is moved, its text stands there once
    texts = [file.read_text(encoding="utf-8") for file in HOUSE.rglob("*.py")]
    for fault in plan:
        n_found = sum(text.count(fault.old) for text in texts)
        assert n_found == 1, f"{fault.name}: the package has this {n_found} times: {fault.old!r}"
        assert fault.new != fault.old, fault.name
        assert all((TESTS / name).is_file() for name in fault.tests), fault.name
