"""Sphinx's configuration: `docs/build.py` puts it beside the pages and what it made of the zoo."""

import importlib.metadata

project = "bayeszoo"
author = "the authors of bayeszoo"
version = release = importlib.metadata.version("bayeszoo")
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["CONTRACT.md"]  # another page includes it
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
smartquotes = False  # `--columns` is no dash

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # `docs/execute.py` has run the notebooks
nb_merge_streams = True
nb_code_prompt_show = "Show the assertions"  # only they are hidden
nb_code_prompt_hide = "Hide the assertions"

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "bayeszoo"
html_static_path = ["_static"]
html_css_files = ["zoo.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "navigation_with_keys": False,
}
html_context = {"default_mode": "light"}
html_sidebars = {page: [] for page in ("index", "misprints", "api")}  # nothing is below them
