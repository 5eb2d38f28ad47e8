"""Check readers' messages: one printable line with the file, the position, the problem, and a remedy."""

import math
import re

from fuzzmutations import decompressed

from tiedtools.base.errors import printable

LONGEST = 1000  # characters, file names not counted
POSITION = re.compile(r"(?::in|:out|:sum|, last part)?(?::(\d+): |: row (\d+): |: )")
# Problems of a file as a whole; all others need a line or a row.
WHOLE = re.compile(
    r"cannot be read: |is empty; |no words?\b|no such file; |has no list of words |holds no |(has )?[\d,]+ words?, but "
    r"|the counts add up |too little text "
    r"|is not a whole |is not one matrix |has numbers of type |\d+ of its matrices |has a line of more "
    r"|not a (file of runs|run manifest), or corrupt \(|is not a file of runs"
    r"|not a tiedtools (model|checkpoint), or corrupt \(|not a model of rnnlm, or corrupt \(|is not in model format "
    r"|is a (model|checkpoint|zip archive)|a model \(|has no (in|out)put vectors\b|its input and output vectors "
    r"|was created with(out)? |written by |contains a model file|is in NumPy's |is not a model file"
    r"|is a binary file|has no line for the word |'' has a value that is nan"
)
VERBS = """add check choose close convert copy correct decompress delete drop get give lower make name pip quote read
remove rename rerun resume save set train unpack update use write""".split()
REMEDY = re.compile(rf"[;?:] (if [^;,]*, )?({'|'.join(VERBS)})\b|; `|\?$|\? `")
OPTION = re.compile(r"(?<![\w/-])--?(?!inf|nan)[a-z][\w-]*")
# Options allowed in remedies, by prefix of the reader's name: those of the commands that call the reader.
REMEDIES = {
    "text-train": {"--valid-share", "-valid", "-min-count", "--errors"}, "text": {"--errors"},
    "vectors": {"--errors", "--save-model"}, "check-": {"--errors", "--save-model"}, "model": {"--save-model"},
    "rnnlm": {"-class"}, "checkpoint": {"--checkpoint", "--resume", "--save-model"}, "log": {"--log-json"},
    "probabilities": set(),
}  # fmt: skip


def lines(data):
    """Return the number of lines, including one past the end; infinity if the data cannot be decompressed."""
    try:
        return decompressed(data).count(b"\n") + 2
    except Exception:
        return math.inf


def judge(message, path, files, reader=""):
    """Return what is wrong with a message about `path` or another of the `files` in its folder, or None."""
    if not message.isprintable():
        return "not one printable line"
    shown = {printable(str(path.with_name(name))): data for name, data in files.items()}
    name = max((name for name in shown if message.startswith(name)), key=len, default=None)
    if name is None:
        return "does not begin with the file's name"
    rest = message.removeprefix(name)
    for other in sorted(shown, key=len, reverse=True):
        rest = rest.replace(other, "FILE")
    rest = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", lambda quote: quote[0][0] * 2, rest)
    if len(rest) > LONGEST:
        return "longer than a line"
    if not (position := POSITION.match(rest)):
        return "no position after the file's name"
    problem = rest[position.end() :]
    if position[1] and not 1 <= int(position[1]) <= lines(shown[name]):
        return "a line that the file does not have"
    if not (position[1] or position[2] or WHOLE.match(problem)):
        return "neither a position nor a problem of the whole file"
    if not (remedy := REMEDY.search(problem)):
        return "no remedy"
    allowed = next((REMEDIES[start] for start in REMEDIES if reader.startswith(start)), set())
    for option in OPTION.finditer(problem):
        if option[0] not in allowed or option.start() < remedy.start():
            if not re.match("was created with(out)? ", problem):  # which names options of the resumed run
                return f"an option that was not given: {option[0]}"
    return None
