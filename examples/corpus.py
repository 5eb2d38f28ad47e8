"""Build an English corpus of about a million words from installed documentation: python examples/corpus.py

Docstrings and comments of Python sources become lowercase sentences without duplicates, one per line, with whitespace
between words and punctuation. The same installation always gives the same text. The text is technical English: suitable
for trying the toolkit, not for comparison with published results.

The sources are parsed, never imported. Docstrings, long strings, and block comments are split into paragraphs and
sentences; a sentence is kept if all of it reads as English.

>>> list(sentences("The matrix is *not* copied.  See :func:`numpy.copy` for that, e.g. here."))
[['The', 'matrix', 'is', 'not', 'copied', '.'], ['See', 'copy', 'for', 'that', ',', 'e.g.', 'here', '.']]
"""

import argparse
import functools
import gc
import importlib.util
import inspect
import io
import math
import os
import re
import signal
import sys
import sysconfig
import time
import tokenize

from tiedtools.base.errors import TiedtoolsError, printable, unreadable
from tiedtools.files.output import open_packed

PACKAGES = ("stdlib", "numpy", "scipy", "numba", "llvmlite", "click", "tqdm", "xopen")
USUAL_PACKAGES = ("pip",)  # included by default if installed
EVERY = 2  # seconds between messages

SKIPPED_FOLDERS = {"__pycache__", "dist-packages", "site-packages", "test", "tests"}
MIN_STRING_SPACES = 4  # in a string, to be a passage
MIN_WORDS = 5  # in a sentence
MIN_WORD_SHARE = 0.6  # of its tokens
MIN_COMMON_SHARE = 0.12  # of a sentence's words; code and lists of names have fewer
COMMON_WORDS = frozenset(
    "a about after all also an and any are as at be because been before being but by can could do does each for from "
    "given had has have here how if in into is it its may more most must no not of on one only or other our should so "
    "some such than that the their them then there these they this those to two under up used was we were what when "
    "where whether which while who will with within without would you your".split()
)

# Directives and targets whose indented content is not prose: code, figures, references, footnotes.
NO_PROSE_BLOCK = re.compile(
    r"\.\. (?:\[|_|\||(?:auto\w+|code(?:-block)?|currentmodule|figure|highlight|image|index|ipython|legacy|"
    r"literalinclude|math|module|moduleauthor|parsed-literal|plot|sectionauthor|sourcecode|testcode|toctree|version\w+)::)"
)
NO_PROSE_LINE = re.compile(
    r"\.\.$|\W*$|[\w*`'\", .\[\]()]{1,60} : \S|:\w+:`[^`]*`$|[|+].*[|+]$"  # a ruler, `name : type`, a link, a table
)
COLUMNS = re.compile(r"\S {3,}\S|[^\s.!?:;,)\"'`] {2}\S")  # in a line with two spaces in a row
# Between three or one of the quotation mark {0}, which is not the first of three in the string.
QUOTED = r"(?:{0}{{3}}[^{0}\\]*(?:(?:\\.|{0}(?!{0}{0}))[^{0}\\]*)*{0}{{3}}|{0}[^{0}\\\n]*(?:\\.[^{0}\\\n]*)*{0})"
STRING = "|".join(QUOTED.format(mark) for mark in ('"', "'"))
TOKEN = re.compile(rf"#(?P<comment>[^\n]*)|(?P<kind>\b[A-Za-z]{{1,2}}|)(?P<string>{STRING})", re.DOTALL)
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
PROMPTS = ">>>", "$ ", "In ["
HEADING_RULER = re.compile(r"([=~^\"'`*#+.-])\1{2,}$")
LEAD = re.compile(  # of a list item, a note, a field, a remark
    r"(?:[-*+•] |\(?(?:\d{1,2}|[a-z])[.)] |\.\. \w+::|[:@][a-z]+(?: [^:]*)?: |(?:XXX|TODO|FIXME|NOTE|HACK)\b\W*)\s*"
)
INLINE = [  # (text in each match, pattern, replacement); without a pattern, the text itself is replaced
    (text, pattern and re.compile(pattern), replacement)
    for text, pattern, replacement in (
        ("<", r"`([^`<]*[^`<\s])\s*<[^`>]*>`__?", r"\1"),  # a named link
        ("]", r"\s?\[(?:\d+|[A-Z]\w*)\]_?(?:, \[\d+\]_?)*", ""),  # a footnote's mark
        (":`", r":[a-z:+-]+:`[~!]?(?:[\w.]+\.)?([^`]*)`", r"\1"),  # a role
        ("`", r"(`+)([^\s`*](?:[^`*]*[^\s`*])?)\1", r"\2"),  # literals
        ("*", r"(\*{1,2})([^\s`*](?:[^`*]*[^\s`*])?)\1", r"\2"),  # emphasis
        *((quote, None, '"') for quote in ("``", "''", "“", "”")),
        *((quote, None, "'") for quote in "‘’`"),
        ("", r"(?<!\S)([\"'(]*)(?:--?|[.$@])(?=[A-Za-z_])", r"\1"),  # -option, .attribute, $VARIABLE, @decorator
        ("()", r"(?<=\w)\(\)", ""),  # name()
        ("_", r"\b_+|_+\b", ""),  # __name__, name_
        ("://", r"<?\b(?:https?|ftp)://[^\s>]*[^\s>.,;:)]>?", ""),
        ("(s)", r"\b([A-Za-z]+)\(s\)", r"\1s"),
        ("=", r"(?<=\w)=(?=['\"]?[A-Za-z]{2})", " "),  # name='value'
        *((bracket, rf"(?<=\w\w)(?=\{bracket}[A-Za-z])", " ") for bracket in "(["),  # name(value)
        *((f"{name}.", rf"\b{name}\.(?=[A-Za-z]+\b)", "") for name in "np numpy scipy os sys self math".split()),
        ("--", r"\s--+\s", " - "),
        *((dash, None, " - ") for dash in "–—"),
        (" <= ", None, " at most "),
        (" >= ", None, " at least "),
        (" < ", None, " less than "),
        (" > ", None, " greater than "),
        (" == ", None, " equal to "),
        (" != ", None, " not equal to "),
    )
]
END = re.compile(r"(?<=[.?!])[\"')]*\s+(?=[\"'(]*[A-Z0-9])")
ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|vs|cf|[Ff]igs?|[Ee]qs?|resp|[Nn]o|[Ss]ec|pp?|Dr|Mr|St|[A-Z])\.$")
CHUNK = re.compile(r"([\"'(\[]*)((?:e\.g|i\.e)\.|\w+(?:['/.-]\w+)*|[/-])([.,;:?!)\]\"']*)")
WHOLE = re.compile(r"[\d.]+|\w\.\w\.")
PART = re.compile(r"[^\W_]+(?:['-][^\W_]+)*|[/-]")
PUNCTUATION = re.compile(r"\.\.\.|.")


def build(packages, keep_case=False, raw=False):
    """Yield every different sentence of the packages' documentation once, as a tuple of tokens, in a fixed order.

    raw  yield paragraphs instead, as tuples of strings between whitespace
    """
    seen, split = set(), set()
    for path in dict.fromkeys(path for package in packages for path in sources(package)):
        try:
            with open(path, "rb") as file:
                source = file.read()
        except OSError as error:
            raise unreadable(path, error) from None
        for paragraph in (paragraph for passage in passages(source) for paragraph in paragraphs(passage)):
            if paragraph.count(" ") < MIN_WORDS - 1 or paragraph in split:
                continue
            split.add(paragraph)
            found = [tuple(t if keep_case or raw else map(str.lower, t)) for t in sentences(paragraph, raw)]
            found = [tokens for tokens in dict.fromkeys(found) if tokens not in seen]
            seen.update(found)
            yield from found if not raw else [sum(found, ())] if found else []


def default_packages():
    """The packages that a corpus is made of by default."""
    return [*PACKAGES, *filter(importlib.util.find_spec, USUAL_PACKAGES)]


def sources(package):
    """The paths of a package's Python sources without its tests, sorted; `stdlib` is the whole standard library."""
    if package == "stdlib":
        return walk(sysconfig.get_path("stdlib"))
    try:
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
    except ValueError:  # __main__
        spec = None
    if spec is None or not (spec.submodule_search_locations or (spec.origin or "").endswith(".py")):
        raise TiedtoolsError(f"--package {package}: no Python sources of that name are installed; check the name")
    if not spec.submodule_search_locations:
        return [spec.origin]
    return [path for folder in spec.submodule_search_locations for path in walk(folder)]


def walk(folder):
    """Paths of the sources in a folder and below, sorted."""
    found = []
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith(".")]
        found += [os.path.join(here, name) for name in files if name.endswith(".py")]
    return sorted(found)


def passages(source):
    """Yield the docstrings, long strings, and block comments of one source (bytes), dedented, in their order."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        source = source.decode(encoding, "replace").replace("\r\n", "\n")
    except (SyntaxError, LookupError):
        return  # no such encoding
    parts, comments, end = [], False, 0
    tokens: list[re.Match | None] = [*TOKEN.finditer(source), None]
    for token in tokens:
        between = source[end : token.start()] if token else "the end"
        comment = token is not None and token.lastgroup == "comment"
        adjoins = between.strip(" \t") == "\n" if comment else not between.strip("\\ \t\n")
        if parts and not (adjoins and comment == comments):
            if comments or sum(part.count(" ") for part in parts) >= MIN_STRING_SPACES:
                yield inspect.cleandoc(("\n" if comments else "").join(parts))
            parts = []
        if token:
            end, comments = token.end(), comment
            if not comment:
                parts.append(value(token))
            elif not source[source.rfind("\n", 0, token.start()) + 1 : token.start()].strip():
                parts.append(token["comment"].lstrip("#!:"))


def value(token):
    """Return the value of a string literal; of bytes and of f-strings, which are not passages, an empty one."""
    kind, text = token["kind"].lower(), token["string"]
    text = text[3:-3] if text[:3] in ('"""', "'''") else text[1:-1]
    if "f" in kind or "b" in kind:
        return ""
    return text if "r" in kind or "\\" not in text else ESCAPE.sub(unescape, text)


def unescape(escape):
    """Return the character of an escape sequence, or the sequence itself if it is rare in prose."""
    return {"\n": "", "n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}.get(escape[1], escape[0])


def paragraphs(text):
    """Yield a passage's paragraphs, each as one line, without code, tables, headings and markup."""
    paragraph, depth = [], 0
    in_doctest, skip_beyond = False, math.inf  # what is deeper belongs to a block without prose
    lines = text.splitlines()
    for line, following in zip(lines, lines[1:] + [""]):
        indent = len(line) - len(line.lstrip())
        line = line.strip()
        if line and indent > skip_beyond:
            continue
        in_doctest = bool(line) and (in_doctest or line.startswith(PROMPTS))
        no_prose = line.startswith(".. ") and bool(NO_PROSE_BLOCK.match(line))
        columns = "  " in line and COLUMNS.search(line)
        keep = not (
            in_doctest or no_prose or columns or NO_PROSE_LINE.match(line) or HEADING_RULER.match(following.strip())
        )
        lead = LEAD.match(line)
        if paragraph and (not keep or lead or depth not in (None, indent)):
            yield " ".join(paragraph)
            paragraph = []
        if line:
            skip_beyond = indent if no_prose or line.endswith("::") else math.inf
        if keep:
            paragraph.append(line[lead.end() :] if lead else line)
            depth = None if lead else indent  # the next line of a list item shows how deep the item stands
    if paragraph:
        yield " ".join(paragraph)


def sentences(paragraph, raw=False):
    """Yield the English sentences of a paragraph as lists of tokens, or of strings between whitespace if `raw`."""
    for text, pattern, replacement in INLINE:
        if text in paragraph:
            paragraph = pattern.sub(replacement, paragraph) if pattern else paragraph.replace(text, replacement)
    sentence = []
    for piece in END.split(paragraph):
        sentence += piece.split()
        if not ABBREVIATION.search(piece):
            tokens = english(sentence)
            if tokens:
                yield sentence if raw else tokens
            sentence = []


def english(chunks):
    """The tokens of a sentence split at whitespace, or None if it is not English."""
    tokens = []
    for chunk in chunks:
        parts = tokens_of(chunk)
        if parts is None:
            return None
        tokens += parts
    words = [token for token in tokens if token[0].isalpha()]
    common = sum(word.lower() in COMMON_WORDS for word in words)
    if len(words) < MIN_WORDS or common < MIN_COMMON_SHARE * len(words) or len(words) < MIN_WORD_SHARE * len(tokens):
        return None
    return tokens


@functools.lru_cache(1 << 16)
def tokens_of(chunk):
    """The tokens of text without whitespace, or None if it is not English."""
    parts = CHUNK.fullmatch(chunk)
    if parts is None:
        return None
    before, word, after = parts.groups()
    return [*before, *([word] if WHOLE.fullmatch(word) else PART.findall(word)), *PUNCTUATION.findall(after)]


def write(output, packages, keep_case=False, raw=False):
    """Write the corpus to a path, `-` for standard output; report progress, and the size at the end, on stderr."""
    words = lines = 0
    due = time.monotonic() + EVERY
    with open_packed(output) as file:
        for tokens in build(packages, keep_case, raw):
            file.write((" ".join(tokens) + "\n").encode())
            words += sum(token[0].isalpha() for token in tokens)
            lines += 1
            if time.monotonic() >= due:
                due += EVERY
                print(f"{words:,} words so far", file=sys.stderr)
    print(
        f"{words:,} words in {lines:,} {'paragraphs' if raw else 'sentences'} from {', '.join(packages)}",
        file=sys.stderr,
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0] + ".", allow_abbrev=False)
    parser.add_argument("-output", "--output", default="-", metavar="FILE", help="output file; - is standard output")
    parser.add_argument(
        "-package",
        "--package",
        action="append",
        metavar="NAME",
        help="use only this package; stdlib is the standard library; repeatable (default: stdlib, tiedtools'"
        " dependencies, pip)",
    )
    parser.add_argument("--keep-case", action="store_true", help="do not lowercase the text")
    parser.add_argument("--raw", metavar="FOLDER", help="write a file of raw paragraphs of each package to FOLDER")
    options = parser.parse_args(arguments)
    if options.raw and (options.keep_case or options.output != "-"):
        parser.error("--raw writes raw text to its folder; omit -output and --keep-case")
    packages = options.package or default_packages()
    try:
        if options.raw:
            os.makedirs(options.raw, exist_ok=True)
            for package in packages:
                write(os.path.join(options.raw, f"{package}.txt"), [package], raw=True)
        else:
            write(options.output, packages, options.keep_case)
    except TiedtoolsError as error:
        sys.exit(printable(f"corpus.py: {error}"))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `python examples/corpus.py | head`
    gc.disable()  # saves 7% of the time: sentences are tuples of strings, without cycles
    main()
