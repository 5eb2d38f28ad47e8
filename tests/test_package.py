"""Test the contents of the source distribution and the wheel, and that the wheel runs without the sources."""

import configparser
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser

import pytest
from common import ROOT

from tiedtools.base.version import __version__

FOLDERS = ".ci", "bin", "docs", "examples", "requirements", "tests", "tiedtools"
FILES = "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "README.md", "SECURITY.md"
FILES += "pyproject.toml", "setup.cfg"
MADE = {"__pycache__", "_build"}  # folders that no archive holds

pytest.importorskip("setuptools", "70.1")
pytestmark = pytest.mark.skipif(not (ROOT / "setup.cfg").exists(), reason="needs the sources")


def build(kind, source, folder):
    """Build a wheel or sdist of `source` with setuptools; return its path in `folder`."""
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(folder)!r}))"
    result = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return folder / result.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The unpacked sdist, and the wheel made from it."""
    folder = tmp_path_factory.mktemp("built")
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*MADE))
    shutil.unpack_archive(build("sdist", folder, folder / "dist"), folder / "unpacked")
    unpacked = folder / "unpacked" / f"tiedtools-{__version__}"
    return unpacked, zipfile.ZipFile(build("wheel", unpacked, folder / "dist"))


def files(root, *folders):
    """Return the paths of all files in some folders of `root`."""
    paths = (path for name in folders for path in (root / name).rglob("*") if path.is_file())
    return {str(path.relative_to(root)) for path in paths if not MADE & {*path.parts}}


def test_contents_of_the_sdist_and_the_wheel(built):
    assert files(built[0], *FOLDERS) == files(ROOT, *FOLDERS)
    assert all((built[0] / name).read_bytes() == (ROOT / name).read_bytes() for name in FILES if name != "setup.cfg")
    about = f"tiedtools-{__version__}"
    packed = {name for name in built[1].namelist() if not name.startswith(f"{about}.dist-info/")}
    assert packed == files(ROOT, "tiedtools") | {f"{about}.data/data/share/man/man1/tiedtools.1"}
    about = f"tiedtools-{__version__}.dist-info"
    metadata = Parser().parsestr(built[1].read(f"{about}/METADATA").decode())
    assert (metadata["Name"], metadata["Version"]) == ("tiedtools", __version__)
    assert metadata["Requires-Python"] == ">=3.10" and metadata.get_payload() == (ROOT / "README.md").read_text()
    needed = {line.replace(" ", "") for line in metadata.get_all("Requires-Dist")}
    assert {"click>=8.1", "numba<0.69,>=0.63", "numpy>=1.26"} <= needed
    assert "tiedtools = tiedtools.__main__:main" in built[1].read(f"{about}/entry_points.txt").decode()
    assert "Tag: py3-none-any" in built[1].read(f"{about}/WHEEL").decode()
    assert any(name.startswith(about) and name.endswith("/LICENSE") for name in built[1].namelist())


def test_the_wheel_runs(built, tmp_path):
    built[1].extractall(tmp_path / "site")
    result = subprocess.run(
        [sys.executable, "-m", "tiedtools", "--version"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path / "nothing"), "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
    )
    assert (result.stdout, result.stderr) == (f"tiedtools {__version__}\n", "")


def test_a_leftover_folder_in_site_packages_does_not_hide_an_editable_installation(built, tmp_path):
    """Before 0.2, compiled kernels in the package's folder survived `pip uninstall`."""
    zipfile.ZipFile(build("editable", built[0], tmp_path)).extractall(tmp_path / "site")
    (tmp_path / "site" / "tiedtools" / "kernels").mkdir(parents=True)
    code = f"import site; site.addsitedir({str(tmp_path / 'site')!r}); import tiedtools; print(tiedtools.__file__)"
    found = subprocess.check_output([sys.executable, "-I", "-S", "-c", code], text=True)
    assert found == f"{built[0] / 'tiedtools' / '__init__.py'}\n"


def test_versions_of_requirements_and_citation():
    """Tests with requirements/lowest.txt must cover the lowest versions that setup.cfg allows."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    wanted = config["options"]["install_requires"] + config["options.extras_require"]["test"]
    lowest = dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "requirements/lowest.txt").read_text(), re.M))
    bounds = dict(re.findall(r"^([\w-]+)(?:\[.*\])? >=([\d.]+)", wanted, re.M))
    assert bounds.keys() == lowest.keys()
    assert all(f"{lowest[name]}.".startswith(f"{bound}.") for name, bound in bounds.items())
    recipe = ROOT / "conda/recipe.yaml"  # not in the sdist
    needed = config["options"]["install_requires"].replace(", ", ",").strip().splitlines()
    assert not recipe.exists() or all(f"\n    - {line}\n" in recipe.read_text() for line in needed)
    cited = re.search(r'^version: (.*)\ndate-released: "(.*)"$', (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    versions = re.findall(r"^## \[(.*)\] - (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited.groups() == next(pair for pair in versions if pair[1] != "unreleased")
    assert __version__ == versions[0][0] + ".dev0" * (versions[0][1] == "unreleased")


@pytest.mark.skipif(not (ROOT / "conda").is_dir(), reason="needs a checkout")
def test_a_release_sets_the_version_everywhere(tmp_path):
    release = runpy.run_path(str(ROOT / "bin/release"))
    for name in release["LINES"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "CHANGELOG.md").write_text("## [0.2] - unreleased\n\n- New.\n\n## [0.1] - 2026-11-22\n\n- Old.\n")
    release["prepare"](tmp_path, "9.9.9", "2030-01-02")
    assert all("9.9.9" in (tmp_path / name).read_text() for name in release["LINES"])
    assert release["notes"](tmp_path, "9.9.9") == "- New.\n"


@pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="needs a checkout")
def test_ci_covers_every_supported_python():
    supported = re.findall(r"Python :: (3\.\d+)", (ROOT / "setup.cfg").read_text())
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/ci.yml").read_text())[1]
    assert re.findall(r"3\.\d+", tested) == supported
