"""Forecasts that are calibrated for each person, not only on average.

Public names, which `__init__.pyi` lists, are imported on first use, so that `import evenhand` is
fast.
"""

import lazy_loader

from evenhand._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
