"""Build the wheel, install it without extras in an environment of its own, and use it.

Import, audit, help.

A model trained elsewhere must be auditable without the neural extra, and what needs the extra must
raise an error that names it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

USE_IT = """
import importlib.util
import sys
import numpy as np
import evenhand
assert importlib.util.find_spec("reproduction") is None, "the wheel has the studies"
assert "torch" not in sys.modules and "sklearn" not in sys.modules, "import evenhand is heavy"
rng = np.random.default_rng(0)
y = rng.normal(size=300)
forecast = evenhand.Forecast.from_normal(np.zeros(300), np.ones(300))
found = evenhand.audit(forecast, y=y, groups={"first half": np.arange(300) < 150}, random_state=0)
assert found.score("average error") < 0.1, found.summary()
assert "<strong>Audit of forecast</strong>" in found.to_html()
from evenhand.results import audit_schema
from evenhand.monitoring import Watch, watch_schema
assert set(audit_schema()["$defs"]["AuditRows"]["required"]) <= set(found.to_dict())
assert set(watch_schema()["required"]) <= set(Watch().to_dict())
from sklearn.linear_model import Ridge
X = rng.normal(size=(300, 2))
model = evenhand.RandomizedRegressor(Ridge(), random_state=0).fit(X, X[:, 0] + y)
assert model.forecast(X, 0.5).pit(X[:, 0] + y).shape == (300,)
try:
    evenhand.MixtureMLPRegressor().fit(X, y)
except evenhand.MissingExtraError as error:
    assert "pip install 'evenhand[neural]'" in str(error), error
else:
    raise AssertionError("torch should be missing here")
"""


def build(folder: Path, *kinds: str) -> None:
    """Build the distributions of these kinds, such as `--wheel`, into a folder."""
    command = [sys.executable, "-m", "build", "--no-isolation", *kinds]
    command += ["--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def use(archive: Path) -> None:
    """Install an sdist or a wheel in an environment of its own, import, audit, print help."""
    outside = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "env", with_pip=True)
        scripts = Path(folder) / "env" / "bin"
        pip = [str(scripts / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        pip += ["--no-compile"]  # it takes as long as the installation
        subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(archive)], check=True)
        subprocess.run([str(scripts / "python"), "-c", USE_IT], check=True, cwd=folder, env=outside)
        shown = subprocess.run(
            [str(scripts / "evenhand"), "--help"],
            check=True,
            cwd=folder,
            env=outside,
            capture_output=True,
            text=True,
        )
    commands = ("demo", "fit", "predict", "randomize", "audit")
    missing = [word for word in commands if word not in shown.stdout]
    if missing:
        raise SystemExit(f"evenhand --help does not name {missing}")
    print(f"{archive.name} imports, audits and prints help")


def main() -> None:
    """Build, install, use."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), "--wheel")
        use(next(Path(folder).glob("*.whl")))


if __name__ == "__main__":
    main()
