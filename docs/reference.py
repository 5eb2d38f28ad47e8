"""Write what `--help` says of all commands to commands.md and, as a man page, tiedtools.1: python docs/reference.py"""

from pathlib import Path

import click

from tiedtools import __version__
from tiedtools.cli import cli

DOCS = Path(__file__).resolve().parent
WIDTH = 100

PREFACE = """# Commands

What `--help` says, written by `python docs/reference.py`. Every option takes one dash or two, and `--name=value` is \
`--name value`.
[formats.md](formats.md) has the files, [methods.md](methods.md) what is computed.

## Synonyms

Commands that train share the names of their options. Those of word2vec.c, of rnnlm, and of tiedtools 0.1 remain valid.

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
Texts have white space between words and a sentence on each line, plain or compressed; \- is standard input or output.
Results go to standard output, all else to standard error. An output file appears under its name only when it is whole.
Every option takes one dash or two.
.SH COMMANDS
"""

MAN_END = r""".SH ENVIRONMENT
.TP
.B TIEDTOOLS_DATA
A folder in which named data sets are looked for.
.TP
.B TIEDTOOLS_CACHE
Where downloads go, instead of a folder in the user's cache.
.TP
.B TIEDTOOLS_MIRROR
A base URL or a folder that takes the place of the sources of downloads.
.TP
.B TIEDTOOLS_CPU
haswell: the same numbers on every x86-64 processor with AVX2, at a part of the speed where there is AVX-512.
.TP
.B TMPDIR
Where the ids of a text lie during training, 4 bytes for each word.
.SH EXIT STATUS
0; 1 after an error or, where the command says so, a negative answer; 2 for a wrong command line; 130 after Ctrl-C,
143 after TERM and 129 after HUP, when what was trained so far has been written; 141 when nobody reads the output.
.SH EXAMPLES
.nf
tiedtools corpus \-output corpus.txt
tiedtools w2v \-\-tie\-linear \-output vectors.txt corpus.txt
tiedtools nn vectors.txt matrix file
.fi
"""

ROFF = str.maketrans({"\\": r"\e", "-": r"\-", "`": r"\(ga", "'": r"\(aq", "^": r"\(ha", "~": r"\(ti"})


class Roff(click.HelpFormatter):
    """Help as the source of a man page."""

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
    """Text that roff takes for nothing else."""
    return "".join(r"\&" + line if line[:1] in ".'" else line for line in text.translate(ROFF).splitlines(True))


def contexts(command=cli, name="tiedtools", parent=None):
    """A click context for each command, groups before what is in them."""
    context = click.Context(
        command, parent, name, terminal_width=WIDTH, max_content_width=WIDTH,
        help_option_names=cli.context_settings["help_option_names"],
    )  # fmt: skip
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from contexts(command.get_command(context, name), name, context)


def markdown():
    blocks = (f"## {ctx.command_path}\n\n```text\n{ctx.get_help()}\n```\n" for ctx in contexts())
    return "\n".join([PREFACE.format(synonyms=synonyms()), *blocks])


def synonyms():
    """Rows of a table: command, option, its other names."""
    rows = []
    for context in contexts():
        for parameter in context.command.params:
            name, *others = [option for option in parameter.opts if option[:2] == "--" or len(option) == 2] or [""]
            if others:
                also = ", ".join(f"`{other.replace('--', '-')}`" for other in others)
                rows.append(f"| `{context.command_path.removeprefix('tiedtools ')}` | `{name}` | {also} |")
    return "\n".join(rows)


def man():
    formatter = Roff()
    for context in list(contexts())[1:]:
        context.command.format_help(context, formatter)
    return MAN + formatter.getvalue() + MAN_END


if __name__ == "__main__":
    (DOCS / "commands.md").write_text(markdown())
    (DOCS / "tiedtools.1").write_text(man())
