"""Scikit-learn estimators inside a model, stored by skops with a fixed list of allowed types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand._validate import InputError
from evenhand.store.archives import check_archive
from evenhand.store.manifest import error_text
from evenhand.store.reproducible import reproducible
from evenhand.store.structures import check_structures

_DISTANCES = "Chebyshev Euclidean Manhattan Minkowski"
_KERNELS = (
    "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern PairwiseKernel"
    " Product RBF RationalQuadratic Sum WhiteKernel"
)

ALLOWED_TYPES = frozenset(
    {
        "evenhand.forecasters.adapters.QuantileGrid",
        "evenhand.forecasters.adapters.SpreadTrees",
        "evenhand.forecasters.TableClassifier",
        "evenhand.forecasters.TableCounts",
        "numpy.dtype",
        "sklearn._loss.loss.HalfTweedieLoss",
        "sklearn._loss.loss.HalfTweedieLossIdentity",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in _DISTANCES.split()),
        *(f"sklearn.gaussian_process.kernels.{name}" for name in _KERNELS.split()),
    }
)
"""Types allowed in a stored scikit-learn part in addition to those that skops trusts.

No functions. Trees and other structures used by compiled code are checked after loading. Hashes
detect damage but not who wrote a file: load only models from people you trust.
"""


def dump_part(part: Any) -> bytes:
    """Return a fitted estimator as bytes; InputError if it cannot be stored safely."""
    import skops.io

    try:
        content = reproducible(skops.io.dumps(part))
        refused = _refused(content)
    except Exception as error:  # the foreign object may raise anything
        raise InputError(f"cannot be stored without pickle ({error_text(error)})") from error
    if refused:
        raise InputError(f"cannot be stored safely, as it contains {', '.join(refused)}")
    return content


def load_part(content: bytes, source: Path) -> Any:
    """Rebuild an estimator from untrusted bytes."""
    import skops.io

    try:
        # before skops reads it: an archive can unpack to more than the available memory
        check_archive(content)
        refused = _refused(content)
        if refused:
            raise InputError(f"it contains types that are not allowed, {', '.join(refused)}")
        part = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
        # allowed types can still contain indices out of range, which compiled code would follow
        check_structures(part)
    except InputError as error:
        raise InputError(
            f"{source}: an inner model is refused: {error}; do not use this model"
        ) from error
    except MemoryError as error:
        raise InputError(
            f"{source}: an inner model needs more memory than available; do not use this model"
        ) from error
    return part


def _refused(content: bytes) -> list[str]:
    import skops.io

    untrusted = skops.io.get_untrusted_types(data=content)
    return [name for name in untrusted if name not in ALLOWED_TYPES]
