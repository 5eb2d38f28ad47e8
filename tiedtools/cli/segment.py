"""`tiedtools segment`: split words into subwords."""

import click

from tiedtools.cli.options import errors_option, flag, given, option, seed_option


@click.command("segment", short_help="Split words into morphs, syllables, or characters.")
@click.argument("text", default="-", metavar="[TEXT]")
@flag("morphs", "Split into Morfessor's morphs, learned from the words of TEXT or read with --load.")
@flag("syllables", "Split into Pyphen's syllables.")
@flag("chars", "Split into characters.")
@option("load", metavar="FILE", help="Use the morphs in FILE, written by --save or by `morfessor-train -S`.")
@option("save", metavar="FILE", help="Write the morphs learned to FILE, in Morfessor's text format.")
@option("language", default="en_US", metavar="CODE", help="Language of the hyphenation patterns for --syllables.")
@option("separator", default="@@", help="Mark at the end of each subword that does not end its word.")
@flag("types", "Print each different word once, as `word<TAB>sub sub`.")
@option("output", default="-", help="Output file; - is standard output.")
@seed_option
@errors_option
@click.pass_context
def command(ctx, text, morphs, syllables, chars, load, save, language, separator, types, output, seed, errors):
    """Split the words of TEXT into morphs, syllables, or characters.

    TEXT may be compressed (.gz .bz2 .xz .zst); `-` or no argument reads standard input. Each line of TEXT is a line of
    the output, written before the next is read, with subwords separated by spaces: `un@@ happi@@ ness`. As with
    subword-nmt, `sed 's/@@ //g'` restores the words; with --syllables, without their hyphens.

    Morphs are learned by Morfessor 2.0 Baseline from the different words of TEXT, about 1 to 2 ms per word, after the
    whole TEXT has been read. To split other texts in the same way, --save the morphs and --load them. Learning requires
    Morfessor and --syllables requires Pyphen: pip install "tiedtools[subwords]".
    """
    import contextlib

    from tiedtools.evaluation.lexicon import lines as lines_of
    from tiedtools.files.output import STDOUT, open_packed, refuse_clashes
    from tiedtools.text import morphs as morfessor
    from tiedtools.text import subwords
    from tiedtools.text.encoding import encode
    from tiedtools.text.sources import read_once, shown
    from tiedtools.text.syllables import Syllables

    morphs = morphs or bool(load)
    if morphs + syllables + chars != 1:
        raise click.UsageError("choose one of --morphs, --syllables, and --chars; --load implies --morphs")
    learning = morphs and not load
    idle = {
        "--save": save and not learning and "requires --morphs, without --load",
        "--seed": not learning and "requires --morphs, without --load",
        "--language": not syllables and "requires --syllables",
        "--separator": types and "cannot be used with --types",
    }
    for name, problem in idle.items():
        if problem and name.removeprefix("--") in given(ctx):
            raise click.UsageError(f"{name} {problem}")
    inputs = [text, *filter(None, [load])]
    read_once(*inputs)
    refuse_clashes([output, save], inputs)

    with contextlib.ExitStack() as files:
        out = files.enter_context(open_packed(output))
        saved = save and files.enter_context(open_packed(save))
        lines = (words for _, words in lines_of(text, errors))
        if learning:
            morfessor.library()  # before the text is read
            encoded = encode([text], errors=errors)
            lines = encoded.sentences()
            analyses = morfessor.learn(encoded.vocab.words[1:], seed)
            if saved:
                morfessor.write(saved, analyses)
        elif morphs:
            analyses = morfessor.read(load)
        if syllables:
            segment = Syllables(language).load().segment
        else:
            segment = list if chars else morfessor.Lexicon.of(analyses).segment
        written = subwords.types(lines, segment) if types else subwords.marked(lines, segment, separator, shown(text))
        for line in written:
            out.write(line.encode())
            if output in STDOUT:
                out.flush()
