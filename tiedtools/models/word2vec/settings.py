"""Settings of word2vec models under their public names, those of `tiedtools w2v`."""

from typing import Any

from tiedtools.base.processor import available_cores
from tiedtools.base.settings import Reading, with_reading
from tiedtools.models.word2vec.model import Config


def configure(**given: Any) -> list[Any]:
    """Return [Config, dict of settings for reading texts]; `threads` defaults to all cores."""
    threads = given.get("threads")
    given["threads"] = available_cores() if threads is None else threads
    return with_reading(given, (Config,), Reading)


def written(config: Config) -> str:
    """Return which vectors are written by default: "sum" for skip-gram tied+L, which docs/results.md finds best."""
    return "sum" if config.tying == "linear" and not config.cbow else "in"
