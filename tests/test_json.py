"""What `--json` prints: JSON proper, one object on a line, of which docs/formats.md has every name."""

import json
import re
from pathlib import Path

import pytest

FORMATS = Path(__file__).resolve().parents[1] / "docs/formats.md"
COMMANDS = {
    "nn": "nn v a nowhere --json",
    "analogy": "analogy v a b c --json",
    "check": "check v --json",
    "pca": "pca v zeros --json",
    "compare": "compare v zeros --set pairs --json --words 3",
    "eval-sim": "eval-sim v zeros --set pairs --json",
    "eval-analogy": "eval-analogy v zeros --set questions --json",
    "data list": "data list --json",
}
AS = {"analogy": "nn", "compare": "eval-sim"}  # what names another one's
FREE = {"neighbours a", "analogies a b c", "set_paths pairs"}  # names that are the user's


def names(value, above=""):
    """The names of an object and of those within it, each with the one above it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if f"{above} {name}" not in FREE:
                yield name
            yield from names(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner, above)


@pytest.mark.skipif(not FORMATS.exists(), reason="needs a checkout")
@pytest.mark.parametrize("command, line", COMMANDS.items())
def test_names_are_documented(run, tmp_path, monkeypatch, command, line):
    monkeypatch.chdir(tmp_path)
    Path("v").write_text("5 2\na 1 0\nb 0 1\nc 1 1\nd 1 -1\nb 2 2\n")
    Path("zeros").write_text("4 2\na 0 0\nb 0 0\nc 0 0\nd 0 0\n")
    Path("pairs").write_text("a b 1\na c 2\nb d 3\na d 4\n")
    Path("questions").write_text(": s\na b c d\n")
    (told,) = run(*line.split()).stdout.splitlines()
    found = json.loads(told, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    section = FORMATS.read_text().partition("\n## JSON\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([\w -]+)`.*? \|(.*)$", section, re.MULTILINE))
    documented = rows[command] + rows.get(AS.get(command), "")
    if command == "data list":
        found = list(found.values())
    if command == "check":
        found["files"][0]["problems"] = list(found["files"][0]["problems"].values())
        assert found["files"][0]["problems"]
    assert sorted(set(names(found)) - set(re.findall(r"`([^`]+)`", documented))) == []
