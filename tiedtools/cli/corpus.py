"""`tiedtools corpus`: build an English test corpus without a download."""

import time

import click

from tiedtools.cli.options import option

EVERY = 2  # seconds between messages


@click.command("corpus", short_help="Build an English corpus from installed documentation.")
@option("output", default="-", metavar="FILE", help="Output file; - is standard output.")
@option("package", "packages", multiple=True, metavar="NAME",
        help="Use only this package; stdlib is the standard library; repeatable."
             "  [default: stdlib, tiedtools' dependencies, pip]")  # fmt: skip
@option("keep-case", is_flag=True, help="Do not lowercase the text.")
def command(output, packages, keep_case):
    """Build an English corpus of about a million words from installed documentation.

    Docstrings and comments of Python sources become lowercase sentences without duplicates, one per line, with
    whitespace between words and punctuation. The sources are read, not imported. The same installation always gives
    the same text. The text is technical English: suitable for trying the toolkit, not for comparison with published
    results.
    """
    from tiedtools.base.messages import log
    from tiedtools.files.output import open_packed
    from tiedtools.text.localcorpus import build, default_packages

    packages = packages or default_packages()
    words = lines = 0
    due = time.monotonic() + EVERY
    with open_packed(output) as file:
        for tokens in build(packages, keep_case):
            file.write((" ".join(tokens) + "\n").encode())
            words += sum(token[0].isalpha() for token in tokens)
            lines += 1
            if time.monotonic() >= due:
                due += EVERY
                log.info(f"{words:,} words so far")
    log.info(f"{words:,} words in {lines:,} sentences from {', '.join(packages)}")
