"""Test that a setting is one line: in a copy of the package, a field added to a dataclass is everywhere."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from common import ROOT

# Setting -> (module, the declaration that it is put before, commands that then have its option).
TOYS = {
    "toy_loss": ("network/config.py", "    augment: float", ["lm", "lstm"]),
    "toy_epochs": ("training/schedules.py", "    decay: float", ["lm", "lstm", "nmt"]),
    "toy_words": ("models/word2vec/config.py", "    window: int", ["w2v", "shift"]),
    "toy_classes": ("models/rnnlm/config.py", "    classes: int", ["rnnlm"]),
    "toy_sentences": ("models/translation/config.py", "    tie: str", ["nmt"]),
}
ESTIMATORS = {
    "toy_loss": "LanguageModel('lstm', ", "toy_epochs": "Translator(", "toy_words": "Word2Vec(",
    "toy_classes": "LanguageModel('rnnlm', ", "toy_sentences": "Translator(",
}  # fmt: skip


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Return a function that runs Python with a copy of the package that has the TOYS; its folder is `folder`."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "tiedtools", folder / "tiedtools", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "reference.py", folder / "docs")
    for name, (module, before, _) in TOYS.items():
        path = folder / "tiedtools" / module
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, f'    {name}: int = setting(3, Range(0, 9))("Toy of `seed`.")\n{before}'))

    def run(*args):
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, *map(str, args)]
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout

    run.folder = folder
    return run


def test_the_pages_have_its_option(python):
    python("docs/reference.py")
    pages = "".join(page.read_text() for page in sorted((python.folder / "docs").glob("commands-*.md"), reverse=True))
    sections = pages.split("\n## tiedtools ")
    for name, (_, _, commands) in TOYS.items():
        option = f"--{name.replace('_', '-')}"
        assert [text.split("\n")[0] for text in sections if f"\n  {option} " in text] == sorted(
            commands, key=["w2v", "lm", "lstm", "rnnlm", "nmt", "shift"].index
        )
    for text in sections:
        if "--toy-" in text:
            assert " ".join(text.split()).count("Toy of --seed. [default: 3; 0<=x<=9]") == text.count("  --toy-")


@pytest.mark.parametrize("name", TOYS)
def test_python_checks_it(python, name):
    code = f"""
import tiedtools
def refused(**settings):
    try:
        tiedtools.{ESTIMATORS[name]}**settings)
    except tiedtools.Contradiction as error:
        return str(error)
print(refused({name}=4))
print(refused({name[:-1]}=4))
print(refused({name}=10))
print(refused({name}="4"))
print("{name}" in tiedtools.{ESTIMATORS[name].partition("(")[0]}.__doc__)
"""
    accepted, misspelled, large, text, documented = python("-c", code).splitlines()
    assert accepted == "None" and misspelled == f"unknown setting `{name[:-1]}`; did you mean `{name}`?"
    assert large == f"`{name}=10` must be from 0 to 9" and text == f"`{name}='4'` is not int; correct it"
    assert documented == str(name != "toy_classes")


@pytest.mark.parametrize("command, name", [("w2v -iter 1 -size 4", "toy_words"), ("lstm --epochs 1", "toy_loss")])
def test_the_manifest_and_the_model_have_it(python, command, name):
    (python.folder / "text").write_text("the cat sat on the mat\n" * 30)
    option, output = name.replace("_", "-"), python.folder / name
    more = f"-threads 1 --{option} 4 -size 4 -output {output} --save-model {output}.npz text"
    python("-m", "tiedtools", *command.split(), *more.split())
    assert json.loads((python.folder / f"{name}.run.json").read_text())["options"][option] == 4
    code = f"import tiedtools; print(tiedtools.load('{output}.npz').settings['{name}'])"
    assert python("-c", code).strip() == "4"
