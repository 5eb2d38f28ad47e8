"""`tiedtools corpus`: an English text to try things on, without a download."""

import click

from tiedtools.cli.options import option


@click.command("corpus", short_help="Write an English corpus made of installed documentation.")
@option("output", default="-", metavar="FILE", help="File to write; - is standard output.")
@option("package", "packages", multiple=True, metavar="NAME",
        help="Only this package; stdlib is the standard library; may be repeated."
             "  [default: stdlib, tiedtools' dependencies, pip]")  # fmt: skip
@option("keep-case", is_flag=True, help="Leave capitals as they are.")
def command(output, packages, keep_case):
    """Write an English corpus of about a million words, made of documentation that is installed already.

    Docstrings and comments of Python sources become lower-case sentences, one a line, with white space between
    words and punctuation; no sentence comes twice. The sources are read, not imported. The same installation always
    gives the same text. It is technical English: good for trying the toolkit, not for comparing with published
    figures.
    """
    from tiedtools.files.output import open_packed
    from tiedtools.messages import log
    from tiedtools.text.localcorpus import build, default_packages

    packages = packages or default_packages()
    words = lines = 0
    with open_packed(output) as file:
        for tokens in build(packages, keep_case):
            file.write((" ".join(tokens) + "\n").encode())
            words += sum(token[0].isalpha() for token in tokens)
            lines += 1
    log.info(f"{words:,} words in {lines:,} sentences from {', '.join(packages)}")
