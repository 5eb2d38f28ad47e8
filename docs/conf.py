"""Sphinx configuration of the documentation site, which `bin/docs` builds."""

import re

import latex2mathml.converter
from docutils.nodes import SkipNode

import tiedtools

project = "tiedtools"
copyright = "the tiedtools developers"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_static_path = html_css_files = ["site.css"]
html_title = f"tiedtools {tiedtools.__version__}"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"
smartquotes = False
autodoc_member_order = "bysource"
maximum_signature_line_length = 80


def show_hidden(app, page, source):
    """Uncomment the directives in `<!-- site ... -->`, which GitHub does not show."""
    source[0] = re.sub(r"<!-- site\n(.*?)-->", r"\1", source[0], flags=re.DOTALL)


def format_docstring(app, what, name, obj, options, lines):
    """Format a docstring, plain text with aligned lists of `name  meaning`, as reStructuredText."""
    text = re.sub(r"^(?!>>>)(\S.*?)  +(?=\S)", r"`\1`\n    ", "\n".join(lines), flags=re.MULTILINE)  # definitions
    text = re.sub(r"^ +", "    ", text, flags=re.MULTILINE)
    escaped = lambda m: f"``{m[1]}``" if m[1] else f"\\{m[2]}" if m[2] else m[0]
    lines[:] = re.sub(r"(?m)^>>>.*|`([^`]+)`|([*|_\\])", escaped, text).split("\n")


def show_math(translator, node):
    """Write an equation as MathML, which browsers render without scripts, fonts, or a network."""
    translator.body.append(latex2mathml.converter.convert(node.astext(), display="block"))
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (show_math, None), (show_math, None))
    app.connect("source-read", show_hidden)
    app.connect("autodoc-process-docstring", format_docstring)
