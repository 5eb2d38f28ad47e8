"""Table of the model families, one row each. Code that depends on the kind of a model looks it up here."""

import dataclasses
import importlib
from typing import Any

from tiedtools.base.settings import SIDES

LANGUAGE, TRANSLATION = "a language model", "a translation model"


@dataclasses.dataclass(frozen=True)
class Family:
    """A family of models; classes and functions are "module:name" and imported on use.

    kind        `kind` in the header of its model files
    says        what a model of this family is, in messages; families with the same `says` have the same methods
    model, trainer, estimator  classes of the model, of its trainer, and of the model in Python
    configure   function that returns the configuration of a run from keyword arguments
    warm_up     training command -> command lines that compile its kernels; see `tiedtools warmup`
    sides       names of the word vectors in its model files
    exact       whether training writes the same bytes with any number of threads
    """

    kind: str
    says: str
    model: str
    trainer: str
    estimator: str
    configure: str
    warm_up: dict[str, list[str]]
    sides: tuple[str, ...] = SIDES
    exact: bool = False

    @property
    def command(self) -> str:
        """The training command to name in messages."""
        return next(iter(self.warm_up), self.kind)

    def get(self, name: str) -> Any:
        """Import and return the class or function in the field `name`, such as "model"."""
        return imported(getattr(self, name))


def imported(name: str) -> Any:
    """Import and return "module:name"."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


FAMILIES = {
    family.kind: family
    for family in [
        Family(
            "word2vec",
            says="word vectors (a model of `tiedtools w2v`)",
            model="tiedtools.models.word2vec.model:Word2Vec",
            trainer="tiedtools.models.word2vec.trainer:Word2VecTrainer",
            estimator="tiedtools.api.word2vec:Word2Vec",
            configure="tiedtools.models.word2vec.config:configure",
            warm_up={"w2v": ["w2v -output VECTORS TEXT", "w2v -cbow 0 -output VECTORS TEXT", "nn VECTORS w1"]},
        ),
        Family(
            "lstm",
            says=LANGUAGE,
            model="tiedtools.models.lm.model:LstmLM",
            trainer="tiedtools.models.lm.trainer:LstmTrainer",
            estimator="tiedtools.api.language:LanguageModel",
            configure="tiedtools.models.lm.config:configure",
            warm_up={
                "lm": ["lm --cell gru --epochs 1 TEXT", "lm --cell rhn --epochs 1 TEXT"],
                "lstm": ["lstm --epochs 1 --save-model MODEL TEXT", "ppl MODEL TEXT"],
            },
            exact=True,
        ),
        Family(
            "rnnlm",
            says=LANGUAGE,
            model="tiedtools.models.rnnlm.model:Rnnlm",
            trainer="tiedtools.models.rnnlm.trainer:RnnlmTrainer",
            estimator="tiedtools.api.language:LanguageModel",
            configure="tiedtools.models.rnnlm.config:configure",
            warm_up={"rnnlm": ["rnnlm -max-iter 1 --save-model MODEL TEXT", "ppl MODEL TEXT"]},
        ),
        Family(
            "nmt",
            says=TRANSLATION,
            model="tiedtools.models.translation.model:Translator",
            trainer="tiedtools.models.translation.trainer:TranslationTrainer",
            estimator="tiedtools.api.translation:Translator",
            configure="tiedtools.models.translation.config:configure",
            warm_up={"nmt": ["nmt --epochs 1 --save-model MODEL --source TEXT --target TEXT", "translate MODEL TEXT"]},
            sides=("source", *SIDES),
            exact=True,
        ),
    ]
}


def families(says: str) -> list[Family]:
    """Return the families with this `says`."""
    return [family for family in FAMILIES.values() if family.says == says]


def commands(says: str) -> str:
    """Return the training commands of the families with this `says`, for a message."""
    return " or ".join(f"`tiedtools {family.command}`" for family in families(says))
