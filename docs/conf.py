"""Sphinx settings."""

from __future__ import annotations

import evenhand

project = "evenhand"
author = "The evenhand developers"
copyright = "2026, The evenhand developers"
version = release = evenhand.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"evenhand {version}"
autodoc_typehints = "none"
autodoc_default_options = {"exclude-members": "set_fit_request, set_score_request"}
napoleon_use_rtype = False
