"""The documentation site builds without warnings, so that all its links and anchors resolve."""

import subprocess
import sys

import pytest
from paths import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs a checkout")


def test_the_site_builds(tmp_path):
    for name in "sphinx", "myst_parser", "furo":
        pytest.importorskip(name, reason='needs pip install ".[docs]"')
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "--quiet", "--doctree-dir", tmp_path / "trees"]
    result = subprocess.run([*command, ROOT / "docs", tmp_path / "site"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    page = (tmp_path / "site" / "python.html").read_text()
    for name in "Word2Vec.fit", "LanguageModel.perplexity", "Vectors.most_similar", "load", "evaluate_similarity":
        assert f'id="tiedtools.{name}"' in page
    assert "&lt;!--" not in page and "eval-rst" not in page
    assert 'id="which-model-to-choose"' in (tmp_path / "site" / "index.html").read_text()
