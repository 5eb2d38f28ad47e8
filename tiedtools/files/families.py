"""Table of the model families, one row each. Code that depends on the kind of a model looks it up here."""

import dataclasses
import pkgutil
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
    exact       whether training writes the same bytes again with several threads
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
        return pkgutil.resolve_name(getattr(self, name))


FAMILIES = {
    family.kind: family
    for family in [
        Family(
            "word2vec", "a model of word vectors", "tiedtools.models.word2vec.model:Word2Vec",
            "tiedtools.models.word2vec.trainer:Word2VecTrainer", "tiedtools.api.word2vec:Word2Vec",
            "tiedtools.models.word2vec.config:configure",
            {"w2v": ["w2v -output VECTORS TEXT", "w2v -cbow 0 -output VECTORS TEXT", "nn VECTORS w1"]},
        ),
        Family(
            "lstm", LANGUAGE, "tiedtools.models.lm.model:LstmLM", "tiedtools.models.lm.trainer:LstmTrainer",
            "tiedtools.api.language:LanguageModel", "tiedtools.models.lm.config:configure",
            {
                "lm": ["lm --cell gru --epochs 1 TEXT", "lm --cell rhn --epochs 1 TEXT"],
                "lstm": ["lstm --epochs 1 --save-model MODEL TEXT", "ppl MODEL TEXT"],
            },
            exact=True,
        ),
        Family(
            "rnnlm", LANGUAGE, "tiedtools.models.rnnlm.model:Rnnlm", "tiedtools.models.rnnlm.trainer:RnnlmTrainer",
            "tiedtools.api.language:LanguageModel", "tiedtools.models.rnnlm.config:configure",
            {"rnnlm": ["rnnlm -max-iter 1 --save-model MODEL TEXT", "ppl MODEL TEXT"]},
        ),
        Family(
            "nmt", TRANSLATION, "tiedtools.models.translation.model:Translator",
            "tiedtools.models.translation.trainer:TranslationTrainer", "tiedtools.api.translation:Translator",
            "tiedtools.models.translation.config:configure",
            {"nmt": ["nmt --epochs 1 --save-model MODEL --source TEXT --target TEXT", "translate MODEL TEXT"]},
            sides=("source", *SIDES), exact=True,
        ),
    ]
}  # fmt: skip


def families(says: str) -> list[Family]:
    return [family for family in FAMILIES.values() if family.says == says]


def commands(says: str) -> str:
    """Return the training commands of the families with this `says`, for a message."""
    return " or ".join(f"`tiedtools {family.command}`" for family in families(says))
