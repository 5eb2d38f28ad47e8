"""Split words into syllables with the hyphenation library Pyphen and LibreOffice's patterns."""

import hashlib
from typing import Any

from tiedtools.base.errors import Contradiction, TiedtoolsError, quoted


class Syllables:
    """Segmentation of words at all hyphenation points, and at hyphens.

    Hyphens and the empty syllables next to them are dropped, except in words of hyphens only. A word that cannot be
    split is one syllable. The patterns of a few languages change letters at a break: Hungarian asszonnyal becomes asz
    szony nyal. Pyphen is imported when the first word is segmented.

    language  code such as "en_US", "de_DE", or "ru"; a region without patterns uses the patterns of the language
    version   version of Pyphen
    patterns  SHA-256 of the pattern file in hexadecimal; None: accept any
    """

    def __init__(self, language: str, version: str | None = None, patterns: Any = None) -> None:
        self.language, self.version, self.patterns = language, version, patterns
        self.pyphen: Any = None

    def load(self) -> "Syllables":
        """Load the patterns; return self.

        Raises TiedtoolsError if Pyphen is not installed, or if its patterns have changed since the model was trained;
        Contradiction for a language without patterns.
        """
        try:
            import pyphen
        except ImportError:
            raise TiedtoolsError(f"syllables need Pyphen: {self.remedy()}") from None
        name = pyphen.language_fallback(self.language)
        if name is None:
            known = [name for name, path in pyphen.LANGUAGES.items() if path.name == f"hyph_{name}.dic"]
            raise Contradiction(f"`language={quoted(self.language)}` is not one of {', '.join(known)}")
        patterns = hashlib.sha256(pyphen.LANGUAGES[name].read_bytes()).hexdigest()
        if self.patterns not in (None, patterns):
            raise TiedtoolsError(
                f"the {self.language} patterns of Pyphen {pyphen.__version__} are not those of version {self.version},"
                f" which segmented the training text; {self.remedy()}"
            )
        if self.patterns is None:
            self.version, self.patterns = pyphen.__version__, patterns
        self.pyphen = pyphen.Pyphen(lang=name)
        return self

    def remedy(self) -> str:
        return f"pip install pyphen=={self.version}" if self.version else 'pip install "tiedtools[subwords]"'

    def segment(self, word: str) -> list[str]:
        """Split a word into syllables, a list of str; "" has none. Raises the errors of `load`."""
        if self.pyphen is None:
            self.load()
        return [syllable for syllable in self.pyphen.inserted(word).split("-") if syllable] or [word] * bool(word)
