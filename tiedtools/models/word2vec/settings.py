"""Settings of word2vec models under their public names, those of `tiedtools w2v`."""

from typing import Any

from tiedtools.cores import available_cores
from tiedtools.models.word2vec.model import Config
from tiedtools.training.settings import sort_out


def configure(**given: Any) -> list[Any]:
    """Return [Config, dict of settings for reading texts]; `threads` defaults to all cores."""
    return sort_out({**given, "threads": given.get("threads") or available_cores()}, (Config,))


def written(config: Config) -> str:
    """Return which vectors are written by default: "sum" for skip-gram tied+L, which docs/results.md finds best."""
    return "sum" if config.tying == "linear" and not config.cbow else "in"
