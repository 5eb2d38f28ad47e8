"""Make the figures fit dark and light pages: no background, and text and axes in gray: python docs/figures.py"""

import re
from pathlib import Path

FIGURES = Path(__file__).resolve().parent / "figures"
GRAY = "#777777"  # contrast of more than 4 to white and to nearly black


def fitted(svg):
    """Return the text of an SVG file of Matplotlib without white areas and black lines."""
    svg = re.sub(r'style="fill: #ffffff(; opacity: [\d.]+)?"', 'style="fill: none"', svg)
    svg = svg.replace("stroke: #000000", f"stroke: {GRAY}")
    return re.sub(r"(\*\{[^}]*\})(?!svg)", rf"\1svg{{fill: {GRAY}}}", svg)


if __name__ == "__main__":
    for path in FIGURES.glob("*.svg"):
        path.write_text(fitted(path.read_text()))
