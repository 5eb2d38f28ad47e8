"""Word vectors, language models, and translation models with tied input and output embeddings."""

import importlib
from typing import TYPE_CHECKING, Any

from tiedtools.base.version import __version__ as __version__

if TYPE_CHECKING:
    from tiedtools.api.evaluation import evaluate_analogies as evaluate_analogies
    from tiedtools.api.evaluation import evaluate_similarity as evaluate_similarity
    from tiedtools.api.explore import explore as explore
    from tiedtools.api.language import LanguageModel as LanguageModel
    from tiedtools.api.loading import load as load
    from tiedtools.api.runs import Runs as Runs
    from tiedtools.api.text import documents as documents
    from tiedtools.api.text import tokenize as tokenize
    from tiedtools.api.translation import Translator as Translator
    from tiedtools.api.word2vec import Word2Vec as Word2Vec
    from tiedtools.base.errors import Contradiction as Contradiction
    from tiedtools.base.errors import Diverged as Diverged
    from tiedtools.base.errors import TiedtoolsError as TiedtoolsError
    from tiedtools.evaluation.documents import SentenceVectors as SentenceVectors
    from tiedtools.text.phrases import Phrases as Phrases
    from tiedtools.vectors.vectors import Vectors as Vectors

    KeyedVectors = Vectors

# Public name -> its module, imported when it is first used: `import tiedtools` takes milliseconds.
PUBLIC = {
    "Contradiction": "base.errors",
    "Diverged": "base.errors",
    "LanguageModel": "api.language",
    "Phrases": "text.phrases",
    "Runs": "api.runs",
    "SentenceVectors": "evaluation.documents",
    "TiedtoolsError": "base.errors",
    "Translator": "api.translation",
    "Vectors": "vectors.vectors",
    "Word2Vec": "api.word2vec",
    "documents": "api.text",
    "evaluate_analogies": "api.evaluation",
    "evaluate_similarity": "api.evaluation",
    "explore": "api.explore",
    "load": "api.loading",
    "tokenize": "api.text",
}
__all__ = ["__version__", *PUBLIC]  # noqa: PLE0604


if not TYPE_CHECKING:  # a type checker would take any name

    def __getattr__(name: str) -> Any:
        name = {"KeyedVectors": "Vectors"}.get(name, name)  # gensim's name
        if name not in PUBLIC:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, "KeyedVectors", *(name for name in globals() if name.startswith("__"))})
