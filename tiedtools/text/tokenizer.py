"""Split raw text into words at the word boundaries of UAX #29, in one process or in several."""

import contextlib
import functools
import pickle
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

from tiedtools.base.errors import TiedtoolsError, library
from tiedtools.base.processor import python
from tiedtools.base.settings import Tokenization

REMEMBERED = 1 << 18  # strings whose words are remembered; a dictionary of this size takes about 50 MB
LONGEST_REMEMBERED = 64  # characters: in scripts without spaces, a string may be a paragraph
END, START = "\x01", "\x02"  # marks of strings that may end and begin a sentence; no control character is in a word
SAME = str.maketrans({"’": "'", "‐": "-", "‑": "-"})  # typographic variants within words
# Language -> beginnings and ends of words that are words of their own.
CONTRACTIONS = {
    "ca": (r"[dlmnst]'", r"'(?:ls?|ns?|m|t|s|us|hi|ho|en)"),
    "en": ("", r"n't|'(?:s|m|d|re|ve|ll)"),
    "fr": (r"(?:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu)'", ""),
    "it": (r"[\p{L}\p{M}]+'", ""),
}
ELISIONS = "ca", "fr", "it"
NO_SPACES = r"[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"  # scripts without spaces between words
# URLs and e-mail addresses. Directly after a word in these scripts, or in katakana, a URL is ASCII.
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Block=Katakana}ｦ-ﾟ]"
ADDRESS = (
    r"((?<={u})(?:(?i:https?|ftp)://|(?i:www)\.)[!-~--[\"<>]]*[a-zA-Z0-9/_~=&%+#-]"
    r"|(?<!\w)(?:(?i:https?|ftp)://|(?i:www)\.)[^\s\"<>]*[\p{{L}}\p{{N}}/_~=&%+#-]"
    r"|(?<!{w}){w}[{w}.+-]{{0,63}}+@[{w}-]+(?:\.[{w}-]+)+)"
).format(w=rf"[\w--{UNSPACED}]", u=UNSPACED)
# #tags, @names, placeholders, and words by UAX #29, in which (?w) makes \b the default word boundary
WORDS = r"(?<!\w)[@#]{word}|<(?:unk|num|url)>|{word}{more}|{other}"
UNICODE = dict(word=r"\w.*?\b", other=r"\S.*?\b")
ASCII = dict(word=r"\w+(?:(?:(?<=[a-zA-Z])[.:'](?=[a-zA-Z])|(?<=[0-9])[.,;'](?=[0-9]))\w+)*", other=r"\S")
# Periods after these words, single letters, and sequences such as U.S. do not end a sentence.
ABBREVIATIONS = (
    "bd|bzw|ca|capt|cf|col|dr|ed|eq|fig|ft|gen|gov|hr|lt|mlle|mm|mme|mr|mrs|ms|mt|nr|pp|prof|rep|rev|sen|sgt|sig|sra?"
    "|st|str|vgl|vol|vs"
)
ORDINALS = "az", "de", "tr"  # languages in which a period after a number makes it ordinal


def regular_expressions() -> Any:
    """Return the module regex. Raises TiedtoolsError if it is not installed, or has other word boundaries."""
    if sys.version_info < (3, 11):
        raise TiedtoolsError("tokenization needs Python 3.11 or later; install tiedtools there")
    regex = library("regex", "tokenization needs regex", "text")
    if not regex.match(r"(?w)'\b", "'a"):  # before 2026.11.18, not a boundary in any language
        raise TiedtoolsError('regex is too old: pip install --upgrade "tiedtools[text]"')
    return regex


class Remembered(dict[str, str]):
    """Dict: string -> result of a function, computed when it is looked up; frequent strings are computed once."""

    def __init__(self, function: Callable[[str], str]) -> None:
        self.function = function

    def __missing__(self, string: str) -> str:
        result = self.function(string)
        if len(string) <= LONGEST_REMEMBERED:
            if len(self) == REMEMBERED:
                self.clear()
            self[string] = result
        return result


class Tokenizer:
    """Splits raw text into words as a Tokenization says; whitespace and zero-width spaces always separate words.

    No rule looks beyond whitespace, except for ends of sentences. So the words of each string between whitespace are
    remembered: most strings of a text are frequent ones. Strings of ASCII, and whole lines if the rules allow it, are
    split by the module re, which is faster than regex.

    drop         drop lines of which no word remains, since an empty line would end a document; blank lines remain
    unsegmented  whether words in a script without spaces, such as Han or Thai, were split into characters
    """

    def __init__(self, rules: Tokenization, drop: bool = False) -> None:
        self.rules, self.drop, self.unsegmented = rules, drop, False
        compiled: Any = functools.partial(regular_expressions().compile, flags=regular_expressions().VERSION1)
        more = "(?:[-‐‑]{word})*" if rules.hyphens == "keep" else ""
        words, ascii_words = (WORDS.format(more=more.format(**kind), **kind) for kind in (UNICODE, ASCII))
        self.word, self.ascii_word = compiled(f"(?w){words}"), re.compile(ascii_words, re.ASCII)
        self.address = compiled(ADDRESS)
        self.control = compiled(r"[\p{Cc}\p{Bidi_Control}\u00ad\u2060\ufeff]")
        self.letter, self.digit = compiled(r"[\p{L}\p{N}]"), compiled(r"\p{Nd}")
        self.number = compiled(r"\p{Nd}+(?:[.,'’_٫٬]\p{Nd}+)*")
        self.no_spaces = compiled(NO_SPACES)
        ordinal = r"|\d\." if rules.language in ORDINALS else ""
        self.begins = compiled(r"[^\w\s]*[\p{Lu}\p{Lt}\p{Lo}\p{N}]")
        question = ";" if rules.language == "el" else ""  # the mark of Greek, in NFC
        self.ends = compiled(rf"[\p{{Sentence_Terminal}}…{question}][\p{{Pe}}\p{{Pf}}\p{{Pi}}\"'*_]*\Z")
        self.goes_on = compiled(rf"(?i)\P{{L}}*(?:(?:\p{{L}}\.)+|(?:{ABBREVIATIONS})\.{ordinal})")
        self.apostrophes = rules.apostrophes or ("contractions" if rules.language in ELISIONS else "keep")
        self.keeps = {self.apostrophes, rules.numbers, rules.urls, rules.punctuation} == {"keep"}
        before, after = CONTRACTIONS.get(rules.language or "", ("", ""))
        self.contraction = compiled(f"(?i)(?:{before}|{after})")
        self.contracted = compiled(rf"(?i)({before}(?=.))?(.*?)((?<=\w){after})?")
        self.remembered = Remembered(self.analyze)

    def __call__(self, text: str) -> str:
        """Return the words of the lines of `text`, separated by spaces."""
        lines = [(line, self.line(line)) for line in text.split("\n")]
        text = "\n".join([words for line, words in lines if words or not self.drop or not line.strip()])
        if self.rules.sentences:
            text = text.replace(f"{END} {START}", "\n").replace(START, "").replace(END, "")
        return text

    def line(self, line: str) -> str:
        """Return the words of a line, separated by spaces, with the marks of sentences."""
        if self.keeps and not self.rules.sentences and line.isascii() and line.isprintable():
            if not may_have_address(line):
                return self.cased(" ".join(self.ascii_word.findall(line)))
        return "".join(map(self.remembered.__getitem__, line.replace("\u200b", " ").split()))[1:]

    def cased(self, text: str) -> str:
        """Return the text in lower case if the rules say so."""
        if not self.rules.lower:
            return text
        text = text.replace("İ", "i")  # otherwise i and a combining dot
        text = text.replace("I", "ı") if self.rules.language in ("az", "tr") else text
        return unicodedata.normalize("NFC", text.lower())

    def analyze(self, string: str) -> str:
        """Return the words of a string without whitespace, each after a space, with the marks of sentences."""
        if string.isascii() and string.isalpha():
            words = [string]
        else:
            if not string.isprintable():
                string = self.control.sub("", string)
            string = unicodedata.normalize("NFC", string)
            self.unsegmented = self.unsegmented or not string.isascii() and bool(self.no_spaces.search(string))
            words = self.tokens(string)
            if not (self.keeps and string.isascii()):
                words = self.rewritten(words)
        result = self.cased("".join([f" {word}" for word in words]))
        if self.rules.sentences and result:
            if self.begins.match(string):
                result = f" {START}{result[1:]}"
            if self.ends.search(string) and not self.goes_on.fullmatch(string):
                result += END
        return result

    def tokens(self, string: str) -> list[str]:
        """Return the words of a string by UAX #29, with addresses, @names, #tags, and contractions in one piece."""
        if self.apostrophes == "contractions" and self.contraction.fullmatch(string.translate(SAME)):
            return [string] * bool(string)
        find = (self.ascii_word if string.isascii() else self.word).findall
        if not may_have_address(string):
            return find(string)
        parts = self.address.split(string)
        return [word for k, part in enumerate(parts) for word in ([part] if k % 2 else find(part))]

    def rewritten(self, words: list[str]) -> list[str]:
        """Return the words that replace words, until each replaces itself."""
        done, todo = [], words[::-1]
        while todo:  # not recursive, since a word may have thousands of apostrophes
            parts = self.parts(word := todo.pop())
            done += [word] * (parts == [word])
            todo += parts[::-1] * (parts != [word])
        return done

    def parts(self, word: str) -> list[str]:
        """Return the words that replace a word: itself, none, or several, which may be replaced, too."""
        rules = self.rules
        if rules.numbers == "keep" and word.isalnum():
            return [word]
        if not (word.isalnum() or len(word) > 1 and self.letter.search(word)):
            return [word] if rules.punctuation == "keep" else []
        if may_have_address(word) and self.address.fullmatch(word):
            return {"keep": [word], "fold": ["<url>"], "drop": []}[rules.urls]
        if rules.numbers != "keep":
            if rules.numbers == "zeros":
                word = self.digit.sub("0", word)
            elif self.number.fullmatch(word):
                return ["<num>"] * (rules.numbers == "fold")
        word = word.translate(SAME)
        if "'" not in word or self.apostrophes == "keep":
            return [word]
        if self.apostrophes == "drop":
            return [unicodedata.normalize("NFC", word.replace("'", ""))]
        if self.apostrophes == "split":
            return [new for part in word.replace("'", " ' ").split() for new in self.tokens(part)]
        before, inner, after = self.contracted.fullmatch(word).groups()
        # The rest may be several words: an accent after an apostrophe, and a letter.
        return [part for part in (before, *self.tokens(inner), after) if part] if before or after else [word]


def may_have_address(string: str) -> bool:
    """Return whether it is worthwhile to search a string for URLs and e-mail addresses."""
    return "@" in string or "//" in string or "www." in string.lower()


class Process:
    """A Tokenizer in a process of its own, which ends with this one; `unsegmented` as for Tokenizer."""

    def __init__(self, rules: Tokenization, drop: bool = False) -> None:
        self.unsegmented = False
        # Not multiprocessing, which imports the caller's script again. A new session: Ctrl-C reaches only this process.
        serving, PIPE = python(f"from {__name__} import serve; serve()"), subprocess.PIPE
        command = [*serving, str(rules), "drop" * drop]
        self.process: Any = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True)

    def __call__(self, text: str) -> str:
        try:
            pickle.dump(text, self.process.stdin, -1)
            self.process.stdin.flush()
            result, self.unsegmented = pickle.load(self.process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            raise TiedtoolsError("a tokenizing process has ended; was it killed? Memory may be full") from None
        return result

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def serve() -> None:
    """Tokenize the texts on standard input, pickled, until it ends."""
    tokenizer = Tokenizer(Tokenization.of(sys.argv[1]), bool(sys.argv[2]))
    with contextlib.suppress(EOFError, OSError):
        while True:
            text = tokenizer(pickle.load(sys.stdin.buffer))
            pickle.dump((text, tokenizer.unsegmented), sys.stdout.buffer, -1)
            sys.stdout.buffer.flush()
