"""Sphinx settings."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

import evenhand

mpl.use("Agg")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "evenhand"
author = "The evenhand developers"
copyright = "2026, The evenhand developers"
version = release = evenhand.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "accessible",
    "explore",
    "json_keys",
    "mathml",
    "page_notebook",
    "rooms",
    "summaries",
]
# names in docstrings link to their descriptions; options keep their two hyphens
default_role = "py:obj"
# names of parameters, such as `low`, that several classes have as attributes link to one of them
suppress_warnings = ["ref.python"]
smartquotes = False
exclude_patterns = ["_build", "gallery", "sg_execution_times.rst"]
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"evenhand {version}"
html_static_path = ["_static"]
html_css_files = ["evenhand.css"]
html_js_files = ["scrolling.js"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False

autodoc_typehints = "none"
autodoc_default_options = {"no-value": True}
autosummary_generate = False
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "rooms.GalleryOrder",
    # reprs of tables alone: those of axes and numbers mean nothing to a reader
    "capture_repr": ("_repr_html_",),
    "image_scrapers": ("accessible.readable_figures",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "backreferences_dir": None,
    "image_srcset": ["2x"],
}
