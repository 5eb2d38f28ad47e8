"""Pages of word vectors: what is in them, and how they behave in a browser (Chromium without a screen)."""

import base64
import json
import re
import shutil
import sys

import numpy as np
import pytest

import tiedtools as tt
from tiedtools.vectors.runs import Runs

pytest.importorskip("plotly", reason='needs pip install ".[explore]"')

ODD = ["</script><b>x", "<img/src=x:y>", "&amp;", "{{data}}", "${now}", "café", "日本", "king" * 30]
WORDS = [*(f"w{k}" for k in range(120)), *ODD]
RNG = np.random.default_rng(3)
MATRIX = RNG.standard_normal((len(WORDS), 8)).astype(np.float32)
NOISE = RNG.standard_normal((6, len(WORDS), 8)).astype(np.float32)
COUNTS = np.arange(len(WORDS), 0, -1) * 1000


def runs(*scales, counts=COUNTS):
    """Return Runs whose vectors are MATRIX and noise of these scales; resamples have half of the words."""
    matrix = np.array([MATRIX + scale * noise for scale, noise in zip(scales, NOISE)])
    return Runs(WORDS, matrix, np.tile(counts // 2, (len(scales), 1)), counts, {})


VECTORS, RUNS = tt.Vectors(WORDS, MATRIX), tt.Runs.of(runs(*[0.6] * 6))
VECTORS.counts = COUNTS
SLICES = {1990: runs(0), "2000": runs(0.2, counts=COUNTS * (np.arange(len(WORDS)) != 7)), "<2010>": runs(0.4)}
SOURCES = {"vectors": VECTORS, "runs": RUNS, "slices": SLICES}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, source in SOURCES.items():
        tt.explore(source, folder / f"{name}.html")
    return folder


def contents(page):
    """Return the data of a page, and the arrays of each time slice."""
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])
    decode = lambda array: np.frombuffer(base64.b64decode(array), np.float32) if isinstance(array, str) else array
    return data, [{name: decode(array) for name, array in frame.items()} for frame in data["frames"]]


def test_data_of_pages(pages):
    data, (frame,) = contents((pages / "vectors.html").read_text())
    assert data["words"] == WORDS and frame["counts"] == COUNTS.tolist()
    for word in "w3", ODD[0]:
        near, scores = (frame[name].reshape(-1, 10)[WORDS.index(word)] for name in ("ids", "scores"))
        neighbors, cosines = zip(*VECTORS.most_similar(word))
        assert [WORDS[int(row)] for row in near] == [*neighbors]
        np.testing.assert_allclose(scores, cosines, atol=1e-6)
    data, (frame,) = contents((pages / "runs.html").read_text())
    expected = RUNS.most_similar("w5")
    assert [WORDS[int(row)] for row in frame["ids"].reshape(-1, 10)[5]] == [answer["neighbor"] for answer in expected]
    columns = [[a["cosine"], a["low"], a["high"], a["in_top"] / a["runs"]] for a in expected]
    np.testing.assert_allclose(frame["scores"].reshape(-1, 10, 4)[5], columns, atol=1e-6)
    units = RUNS.matrix / np.linalg.norm(RUNS.matrix, axis=2, keepdims=True)
    side = np.concatenate(units[:5], 1) / np.sqrt(5)
    spread = np.linalg.svd(side - side.mean(0), compute_uv=False)[:2]
    np.testing.assert_allclose([np.linalg.norm(frame[name]) for name in "xy"], spread, rtol=1e-4)
    data, frames = contents((pages / "slices.html").read_text())
    row, other = (data["words"].index(word) for word in ("w7", "w5"))
    assert data["names"] == [*map(str, SLICES)] and [f["counts"][row] for f in frames] == [COUNTS[7], 0, COUNTS[7]]
    assert [[*np.isnan([frame["x"][row], frame["cosines"][row]])] for frame in frames][1] == [True, True]
    assert not np.isnan(frames[2]["x"]).any() and frames[1]["ids"][10 * row] == -1
    a, b = (each.matrix[0, 5] / np.linalg.norm(each.matrix[0, 5]) for each in (SLICES[1990], SLICES["<2010>"]))
    np.testing.assert_allclose([frames[k]["cosines"][other] for k in (0, 2)], [1, a @ b], atol=1e-3)


def test_the_command_writes_the_page_of_the_library(tmp_path, run, monkeypatch):
    watched = []
    monkeypatch.setattr("tiedtools.vectors.neighbors.Candidates.watch", staticmethod(lambda blocks, length: blocks))
    monkeypatch.setattr("tiedtools.cli.queries.progress_bar", lambda blocks, n: watched.append(n) or blocks)
    VECTORS[:100].write(tmp_path / "v.npy")
    tt.explore(tmp_path / "v.npy", tmp_path / "page.html", first=50, top=3)
    shown = run("explore", tmp_path / "v.npy", "-o", "-", "--first", 50, "--top", 3, "--seed", 2)
    assert shown.stdout_bytes == (tmp_path / "page.html").read_bytes() and shown.stderr.count("no effect") == 1
    data, (frame,) = contents(shown.stdout)
    assert data["words"] == WORDS[:50] and len(frame["ids"]) == 150 and not data["counted"]
    with open(tmp_path / "runs", "wb") as file:
        RUNS.save(file)
    shown = run("explore", tmp_path / "runs", "-o", "-", "--min-count", 100_000)
    assert len(contents(shown.stdout)[0]["words"]) == len(WORDS) - 99 and watched[1:] == [1]
    assert contents(run("explore", f"{tmp_path / 'runs'}:2", "-o", "-").stdout)[0]["columns"] == 1
    tt.explore(SLICES["2000"], tmp_path / "slice.html", min_count=0)
    assert "w7" not in contents((tmp_path / "slice.html").read_text())[0]["words"]


def test_mistakes_leave_an_existing_page_alone(tmp_path, run, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("earlier")
    (tmp_path / "two.txt").write_text("</s> 0 1\na 1 2\nb 3 4\n")
    for name, *options in ["none.txt"], ["two.txt"], ["two.txt", "--min-count", 3], ["two.txt", "--first", 2]:
        failed = run("explore", tmp_path / name, "-o", page, *options)
        assert failed.exit_code and "tiedtools" in failed.stderr and failed.stdout == ""
    with pytest.raises(tt.Contradiction):
        tt.explore(page, page)
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert 'pip install "tiedtools[explore]"' in run("explore", tmp_path / "two.txt", "-o", page).stderr
    assert page.read_text() == "earlier" and len([*tmp_path.iterdir()]) == 2


# In a browser


class Window:
    """A window of Chromium. `js` evaluates an expression, and `wait` waits until it is true."""

    def __init__(self, folder):
        webdriver = pytest.importorskip("selenium.webdriver")
        program, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
        if not program or not driver:
            pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
        options = webdriver.ChromeOptions()
        options.binary_location = program
        flags = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-sync"
        for flag in f"{flags} disable-component-update enable-unsafe-swiftshader user-data-dir={folder}".split():
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.chrome = webdriver.Chrome(options, webdriver.ChromeService(driver))

    def js(self, code):
        return self.chrome.execute_script(f"return {code}")

    def wait(self, code):
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.chrome, 120).until(lambda _: self.js(code), code)

    def open(self, path, width=1200, dark=False):
        size = dict(width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        theme = dict(name="prefers-color-scheme", value="dark" if dark else "light")
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", dict(features=[theme]))
        self.chrome.get_log("performance")  # of the page before
        self.chrome.get(f"file://{path}")
        self.wait("map.querySelectorAll('.annotation').length > 5")

    def type(self, text):
        self.js("$('search').value = ''")
        self.chrome.find_element("id", "search").send_keys(text)

    def finish(self):
        """Check that there were no errors, that no file but the page was requested, and that words are only text."""
        assert [entry for entry in self.chrome.get_log("browser") if entry["level"] == "SEVERE"] == []
        events = [json.loads(entry["message"])["message"] for entry in self.chrome.get_log("performance")]
        sent = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        assert sent and {url.partition(":")[0] for url in sent} <= {"file", "data", "blob", "chrome"}  # chrome: new tab
        assert self.js("document.querySelectorAll('b, img').length") == 0


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    window = Window(tmp_path_factory.mktemp("profile"))
    yield window
    window.chrome.quit()


def test_search_finds_and_a_click_shows(window, pages):
    window.open(pages / "vectors.html")
    window.type("SCRIPT>\n")
    window.wait("chosen >= 0")
    assert window.js("document.querySelector('h2').textContent") == ODD[0]
    assert window.js("$('panel').textContent").endswith("Cosine.")
    near = [word for word, _ in VECTORS.most_similar(ODD[0])]
    assert window.js("[...document.querySelectorAll('td button')].map(b => b.textContent)") == near
    window.chrome.find_element("css selector", "td button").click()
    window.wait(f"words[chosen] === {json.dumps(near[0])}")
    window.type("W11")
    assert window.js("[...$('found').children].map(b => b.textContent)")[:3] == ["w11", "w110", "w111"]
    window.type("nothing")
    assert "No such word" in window.js("$('found').textContent")
    window.type("\ue00c\ue00c")  # Escape closes the list, then deselects
    window.wait("chosen === -1 && named.length === 0 && map.querySelectorAll('.annotation').length > 5")
    at = "map.getBoundingClientRect().{0} + (a => a._offset + a.l2p(frames[0].{0}[9]))(map._fullLayout.{0}axis)"
    place = {axis: window.js(at.format(axis)) for axis in "xy"}
    for kind in "Moved", "Pressed", "Released":
        event = dict(type=f"mouse{kind}", button="none" if kind == "Moved" else "left", clickCount=1, **place)
        window.chrome.execute_cdp_cmd("Input.dispatchMouseEvent", event)
        window.wait("map._hoverdata?.length")
    window.wait("words[chosen] === 'w9'")
    window.finish()


def test_uncertain_neighbors_and_the_path_of_a_word(window, pages):
    window.open(pages / "runs.html")
    window.type("w5\n")
    window.wait("map.data[2].x.length === 11")
    shares = [a["in_top"] / a["runs"] for a in RUNS.most_similar("w5")]
    faded = window.js("[...document.querySelectorAll('tr')].map(row => row.className === 'unsure')")
    assert faded == [share < 0.5 for share in shares] and len({*faded}) == 2
    opacity = window.js("map.data[2].marker.opacity")
    np.testing.assert_allclose(opacity, [1, *(0.25 + 0.75 * share for share in shares)], atol=1e-3)
    assert window.js("/\\.\\d\\d to \\.\\d\\d\\d+%/.test($('panel').textContent)")
    window.finish()
    window.open(pages / "slices.html")
    window.type("w7\n")
    window.wait("map.data[1].x.length === 2")  # one of the three lacks it
    assert window.js("map.data[1].text") == ["1990", "&lt;2010>"]
    window.chrome.find_elements("css selector", "#frames button")[1].click()
    window.wait("$('panel').textContent.includes('No vector here')")
    window.finish()


CONTRAST = """
(() => {
  const numbers = color => color.match(/[\\d.]+/g).map(Number);
  const linear = c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const light = color => numbers(color).slice(0, 3)
    .reduce((sum, c, k) => sum + [.2126, .7152, .0722][k] * linear(c / 255), 0);
  const opaque = node => (numbers(getComputedStyle(node).backgroundColor)[3] ?? 1) > 0;
  const ground = node => opaque(node) ? getComputedStyle(node).backgroundColor : ground(node.parentElement);
  return [...document.querySelectorAll("body *")].filter(node => node.getClientRects().length &&
      [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())).map(node => {
    const style = getComputedStyle(node), b = light(ground(node));
    const a = light(node.closest("svg") ? style.fill : style.color);
    return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), node.textContent];
  });
})()
"""  # [contrast to the background (WCAG 2), text] of each element with text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", SOURCES)
def test_text_has_contrast_and_fits_a_phone(window, pages, name, dark):
    window.open(pages / f"{name}.html", 390, dark)
    window.type("kingking\n")
    window.wait("map.data[2].x.length > 5")
    window.type("w1")
    found = window.js(CONTRAST.strip())
    assert len(found) > 30 and min(found)[0] >= 4.5, min(found)
    assert window.js("document.documentElement.scrollWidth") <= 390
    background = re.findall(r"\d+", window.js("getComputedStyle(document.body).backgroundColor"))
    assert (max(map(int, background)) < 60) == dark
    window.finish()


def test_the_elements_of_a_page_do_not_grow_with_the_words(window, tmp_path):
    many = tt.Vectors([f"w{k}" for k in range(20_000)], np.random.default_rng(1).standard_normal((20_000, 4)))
    tt.explore(many, tmp_path / "many.html")
    window.open(tmp_path / "many.html")
    assert window.js("map.data[0].x.length") == 20_000 and window.js("map.data[0].type") == "scattergl"
    assert window.js("document.querySelectorAll('*').length") < 1500
    window.finish()
