"""The other mathematics library of `make test-rounding`: one unit off, reproducibly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "tools" / "another_libm"

CODE = """
import math, pickle
import numpy as np
from scipy import special, stats

x = np.linspace(-5, 5, 2001)
for function in (np.exp, np.sin, special.ndtr, special.expit):
    assert isinstance(function, np.ufunc)
    moved, plain = function(x), function._ufunc(x)
    assert (moved != plain).mean() > 0.5
    assert (np.abs(moved - plain) <= np.spacing(np.abs(plain))).all()
    # the same one by one, in another layout (NumPy: rising strides), in place, in part, by pickle
    assert [function(float(one)) for one in x] == moved.tolist()
    assert (function(x[3::2]) == moved[3::2]).all()
    held = x.copy()
    assert pickle.loads(pickle.dumps(function))(held, out=held, where=x > 0) is held
    assert (held == np.where(x > 0, moved, x)).all()
assert (np.sin(-x) == -np.sin(x)).all()
# what every library rounds alike
assert np.exp(0.0) == 1 == np.cos(0)
assert math.log2(8) == 3 == np.log10(1000.0)
assert special.ndtr([-np.inf, 0, np.inf]).tolist() == [0, 0.5, 1]
assert sum(math.exp(one) != np.exp._ufunc(one) for one in x) > 1000
assert stats.norm.cdf(x).tolist() == special.ndtr(x).tolist()
"""


def test_results_move_by_one_unit_and_alike_for_equal_arguments() -> None:
    subprocess.run(
        [sys.executable, "-c", CODE], check=True, env=os.environ | {"PYTHONPATH": str(LIBRARY)}
    )
