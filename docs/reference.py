"""Generate the pages of commands and the man page from the `--help` of all commands: python docs/reference.py"""

import re
from pathlib import Path

import click

from tiedtools.base.version import __version__
from tiedtools.cli import COMMANDS, SECTIONS, cli

DOCS = Path(__file__).resolve().parent
WIDTH = 100

EXAMPLES = "tutorial.md", "surprisal.md", "subwords.md", "tokenization.md"  # pages whose commands the tests run
FEW = 3  # examples of a command

PREFACE = """# Commands

The `--help` output of all commands, most with examples that the tests run, by group:

{links}

Options accept one dash or two, and `--name=value` is equivalent to `--name value`.
[File formats](formats.md) has the files that they read and write.

{contents}

## Synonyms

Training commands use the same option names. The names used by word2vec.c and rnnlm are also accepted.

| command | option | also |
|---|---|---|
{synonyms}
"""

MAN = rf""".TH TIEDTOOLS 1 "" "tiedtools {__version__}" "User Commands"
.SH NAME
tiedtools \- word vectors and small language models with tied input and output embeddings
.SH SYNOPSIS
.B tiedtools
.I COMMAND
[OPTIONS] [ARGS]...
.SH DESCRIPTION
Texts have one sentence per line, with words separated by whitespace, and may be compressed; \- is standard input or
output. Results are written to standard output, messages to standard error. Output files are written atomically.
Options accept one dash or two.
.SH COMMANDS
"""

MAN_END = r""".SH ENVIRONMENT
.TP
.B TIEDTOOLS_DATA
Folder in which named data sets are searched for.
.TP
.B TIEDTOOLS_CACHE
Folder for downloads. Default: a tiedtools folder in the user's cache.
.TP
.B XDG_CACHE_HOME
User's cache, with compiled kernels in tiedtools/kernels. Default: ~/.cache. NUMBA_CACHE_DIR, if set, replaces it.
.TP
.B TIEDTOOLS_MIRROR
Base URL or folder that replaces the download sources.
.TP
.B TIEDTOOLS_CPU
haswell: compute identical results on all x86-64 CPUs with AVX2; slower on CPUs with AVX-512.
.TP
.B TMPDIR
Folder for temporary files: the token IDs of the training text, 4 bytes per token.
.SH EXIT STATUS
0 on success; 1 on an error, or on a negative result if the command documents it; 2 on a usage error; 130 after Ctrl-C,
143 after SIGTERM, and 129 after SIGHUP, once the vectors trained so far have been written; 141 on a broken pipe.
.SH EXAMPLES
.nf
tiedtools w2v \-\-tie\-linear \-output vectors.txt corpus.txt
tiedtools nn vectors.txt matrix file
.fi
"""

ROFF = str.maketrans({"\\": r"\e", "-": r"\-", "`": r"\(ga", "'": r"\(aq", "^": r"\(ha", "~": r"\(ti"})


class Roff(click.HelpFormatter):
    """Help formatter that writes the source of a man page."""

    def write_usage(self, prog, args="", prefix=None):
        self.write(f".SS {roff(prog)}\n.B {roff(prog)}\n{roff(args)}\n")

    def write_heading(self, heading):
        self.write(f".PP\n.B {roff(heading)}:\n")

    def write_paragraph(self):
        pass

    def write_text(self, text):
        for paragraph in text.split("\n\n"):
            lines = "".join(f"{roff(line)}\n" for line in paragraph.splitlines() if line != "\b")
            self.write(f".PP\n.nf\n{lines}.fi\n" if paragraph.startswith("\b") else f".PP\n{lines}")

    def write_dl(self, rows, col_max=30, col_spacing=2):
        for term, meaning in rows:
            self.write(f".TP\n.B {roff(term)}\n{roff(meaning)}\n")


def roff(text):
    """Escape text for roff."""
    return "".join(r"\&" + line if line[:1] in ".'" else line for line in text.translate(ROFF).splitlines(True))


def contexts(command=cli, name="tiedtools", parent=None):
    """Yield a click context for each command, groups before their commands."""
    context = click.Context(
        command, parent, name, terminal_width=WIDTH, max_content_width=WIDTH,
        help_option_names=cli.context_settings["help_option_names"],
    )  # fmt: skip
    command.get_help_option_names = lambda context: [*context.help_option_names]  # click before 8.5 shuffles them
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from contexts(command.get_command(context, name), name, context)


def groups():
    """Return the commands of each group of the help: {"train": ["w2v", ...], ...}."""
    names, starts = list(COMMANDS), [list(COMMANDS).index(name) for name in SECTIONS]
    return {title.lower(): names[i:j] for title, i, j in zip(SECTIONS.values(), starts, [*starts[1:], None])}


def pages():
    """Return the text of commands.md and of the page of each group, by file name."""
    blocks = {}
    for context in contexts():
        blocks.setdefault((context.command_path.split() + [""])[1], []).append(block(context))
    links = "\n".join(
        f"* [Commands: {group}](commands-{group}.md): {', '.join(f'`{name}`' for name in names)}"
        for group, names in groups().items()
    )
    preface = PREFACE.format(links=links, contents=blocks[""][0], synonyms=synonyms())
    written = {"commands.md": preface}
    for group, names in groups().items():
        head = f"# Commands: {group}\n\n[Commands](commands.md) has the other groups, and the synonyms of options.\n"
        written[f"commands-{group}.md"] = "\n".join([head, *(text for name in names for text in blocks[name])])
    return written


def block(context):
    """Return the section of a command: its help and examples."""
    text = f"## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"
    shown, sources = [], {}
    for page in filter(Path.exists, (DOCS / name for name in EXAMPLES if not isinstance(context.command, click.Group))):
        source = page.read_text()
        code = "".join(re.findall(r"^```sh\n(.*?)^```$", source, re.DOTALL | re.MULTILINE))
        found = re.findall(rf"^(?:.*\| )?{context.command_path} (?:.*\\\n)*.*$", code, re.MULTILINE)[: FEW - len(shown)]
        shown += found
        sources |= {f"[{source[2 : source.index(chr(10))]}]({page.name})": None} if found else {}
    return text + (f"\nFrom {', '.join(sources)}:\n\n```console\n" + "\n".join(shown) + "\n```\n" if shown else "")


def synonyms():
    """Return the rows of the synonym table: command, option, other names."""
    rows = []
    for context in contexts():
        for parameter in context.command.params:
            name, *others = [option for option in parameter.opts if option[:2] == "--" or len(option) == 2] or [""]
            if others:
                also = ", ".join(f"`{other.replace('--', '-')}`" for other in others)
                rows.append(f"| `{context.command_path.removeprefix('tiedtools ')}` | `{name}` | {also} |")
    return "\n".join(rows)


def man():
    """Return the source of the man page."""
    formatter = Roff()
    for context in list(contexts())[1:]:
        context.command.format_help(context, formatter)
    return MAN + formatter.getvalue() + MAN_END


if __name__ == "__main__":
    for name, page in pages().items():
        (DOCS / name).write_text(page)
    (DOCS / "tiedtools.1").write_text(man())
