"""Another mathematics library.

The results of exp, log, gammaln and their like move by one unit in the last place.

Processors and mathematics libraries round these functions differently, so a test that compares
their digits passes on one machine and fails on the next. Python imports a module of this name from
`PYTHONPATH` when it starts::

    PYTHONPATH=tools/another_libm pytest tests/test_bands.py

`make test-rounding` runs all tests so, with other kernels of BLAS and torch, which add up in
another order.

Each result moves by -1, 0 or +1 unit in the last place, by a hash of the function and of its
arguments: equal arguments give equal results, and odd and even functions stay so, as in every real
library. Results that are whole or half numbers do not move, because libraries agree on those, such
as `exp(0)` and `log2(8)`. Functions of `math`, of `numpy` and of `scipy.special` (with the
distributions of `scipy.stats`, which are made of them) move; roots, sums and `**` do not, nor does
compiled code that calls its own library. `ANOTHER_LIBM_SEED` gives another library.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import math
import os
import struct
import sys
import warnings
import zlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

SEED = os.environ.get("ANOTHER_LIBM_SEED", "0")
# fmt: off
SYMMETRIC = {
    "sin", "cos", "tan", "arcsin", "arctan", "asin", "atan", "sinh", "cosh", "tanh", "arcsinh",
    "arctanh", "asinh", "atanh", "erf", "cbrt",
}
ELEMENTARY = {
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "power",
    "float_power", "arccos", "acos", "arccosh", "acosh", "arctan2", "atan2", "erfc", "gamma",
    "lgamma", *SYMMETRIC,
}
# fmt: on
WORD = (1 << 64) - 1
FIRST, SECOND, STEP = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15  # splitmix64


def salt_of(name: str) -> int:
    """Return the number by which one function's errors differ from another's."""
    return zlib.crc32(f"{SEED} {name}".encode()) * STEP & WORD


def mixed(word: int) -> int:
    """Return the word with its bits mixed, by the end of splitmix64."""
    word = (word ^ word >> 30) * FIRST & WORD
    word = (word ^ word >> 27) * SECOND & WORD
    return word ^ word >> 31


def unit(salt: int, values: Sequence[float]) -> int:
    """Units in the last place, away from zero, by which the result for these arguments moves."""
    word = salt
    for value in values:
        word = mixed((word + struct.unpack("<Q", struct.pack("<d", value))[0]) & WORD)
    return ((word >> 32) * 3 >> 32) - 1


def moves(result: float) -> bool:
    """Return whether libraries may differ in this result."""
    return math.isfinite(result) and not (abs(result) < 1024 and (2 * result).is_integer())


def moved(result: float, units: int) -> float:
    """Return a result that is so many units in the last place farther from zero."""
    if units == 0 or not moves(result):
        return result
    return math.nextafter(result, math.copysign(math.inf, result) if units > 0 else 0.0)


def other_function(function: Callable[..., float]) -> Callable[..., float]:
    """Return a function of `math` that rounds differently."""
    name = function.__name__
    salt, is_symmetric = salt_of(f"math.{name}"), name in SYMMETRIC

    @functools.wraps(function)
    def other(*values: Any) -> float:
        result = function(*values)
        if not all(isinstance(value, float) for value in values):
            return moved(result, unit(salt, [result]))  # whole numbers may be too large for a float
        return moved(
            result, unit(salt, [abs(value) for value in values] if is_symmetric else values)
        )

    return other


class OtherUfunc:
    """A ufunc of `numpy` or `scipy.special` that rounds differently."""

    def __init__(self, ufunc: Any, place: str) -> None:
        self._ufunc = ufunc
        self.__module__ = place
        self._salt = salt_of(ufunc.__name__)
        self._is_symmetric = ufunc.__name__ in SYMMETRIC

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._ufunc)  # what asks for a ufunc finds one

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return ufunc_of, (self.__module__, self._ufunc.__name__)

    def __repr__(self) -> str:
        return repr(self._ufunc)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import numpy as np

        inputs = args[: self._ufunc.nin]
        if (
            all(isinstance(value, float) for value in inputs)
            and not kwargs
            and len(args) == len(inputs)
        ):
            result = self._called(*inputs)
            if type(result) is not np.float64:
                return result
            values = [abs(value) for value in inputs] if self._is_symmetric else inputs
            return np.float64(moved(float(result), unit(self._salt, values)))
        words = self._words(inputs)  # before the call, which may write over them
        result = self._called(*args, **kwargs)
        return result if words is None else nudged(result, words, kwargs.get("where", True))

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        """Call the ufunc; warnings name the line that calls this one, as those of a ufunc do."""
        import numpy as np

        loud = {kind: "call" for kind, way in np.geterr().items() if way == "warn"}
        if not loud:
            return self._ufunc(*args, **kwargs)
        with np.errstate(**loud, call=self._complain):  # type: ignore[arg-type]
            return self._ufunc(*args, **kwargs)

    def _complain(self, kind: str, _flag: int) -> None:
        warnings.warn(f"{kind} encountered in {self._ufunc.__name__}", RuntimeWarning, stacklevel=4)

    def reduce(self, *args: Any, **kwargs: Any) -> Any:
        result = self._ufunc.reduce(*args, **kwargs)
        words = self._words([result])
        return result if words is None else nudged(result, words, True)

    def _words(self, inputs: Sequence[Any]) -> Any:
        """Hash the arguments of each result; None if they are no plain real numbers."""
        import numpy as np

        words, arrays = np.uint64(self._salt), (np.ndarray, np.memmap)
        with np.errstate(all="ignore"):
            for value in inputs:
                if (
                    not isinstance(value, int | float | list | tuple | np.generic)
                    and type(value) not in arrays
                ):
                    return None
                if np.asarray(value).dtype.kind not in "biuf":
                    return None
                numbers = np.array(value, dtype=np.float64)
                numbers = np.abs(numbers) if self._is_symmetric else numbers
                words = words + numbers.view(np.uint64)
                words = (words ^ words >> np.uint64(30)) * np.uint64(FIRST)
                words = (words ^ words >> np.uint64(27)) * np.uint64(SECOND)
                words = words ^ words >> np.uint64(31)
        return words


def nudged(result: Any, words: Any, where: Any) -> Any:
    """Return results, each moved by its hash; those in the caller's array move in place."""
    import numpy as np

    is_array = type(result) in (np.ndarray, np.memmap)
    if not is_array and not isinstance(result, np.floating):
        return result
    if result.dtype not in (np.float64, np.float32) or np.shape(words) != result.shape:
        return result
    units = (((words >> np.uint64(32)) * np.uint64(3)) >> np.uint64(32)).astype(np.int8) - np.int8(
        1
    )
    with np.errstate(all="ignore"):
        size, doubled = np.abs(result), 2 * result
        units *= (size < np.inf) & ((size >= 1024) | (doubled != np.rint(doubled)))
    if not is_array:
        goal = np.copysign(np.inf, result) if units > 0 else 0.0
        return np.nextafter(result, result.dtype.type(goal)) if units else result
    # one more in the bits of a float is one unit in the last place farther from zero
    steps = (result.view(f"i{result.itemsize}") + units).view(result.dtype)
    np.copyto(result, steps, where=where)
    return result


def ufunc_of(place: str, name: str) -> Any:
    """Return a ufunc by its module and name, for pickle."""
    return getattr(importlib.import_module(place), name)


def change_math() -> None:
    """Let the functions of `math` round differently."""
    for name in ELEMENTARY:
        if hasattr(math, name):
            setattr(math, name, other_function(getattr(math, name)))


def change_ufuncs(module: ModuleType) -> None:
    """Let the ufuncs of a module that has just been imported round differently."""
    from numpy import ufunc

    for name in ELEMENTARY if module.__name__ == "numpy" else list(vars(module)):
        function = getattr(module, name, None)
        if type(function) is ufunc and function.nout == 1 and function.signature is None:
            setattr(module, name, OtherUfunc(function, module.__name__))


class Finder(importlib.abc.MetaPathFinder):
    """Changes a module as soon as it has been imported."""

    places = ("numpy", "scipy.special._ufuncs")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.places:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            change_ufuncs(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


change_math()
sys.meta_path.insert(0, Finder())
