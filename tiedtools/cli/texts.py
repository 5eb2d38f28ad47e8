"""Prepare texts: `tokenize`, `vocab`, `phrases`, `segment`, and `data`."""

import contextlib
import dataclasses
import functools
import logging
from collections.abc import Iterator
from typing import Any

import click

from tiedtools.base.messages import log
from tiedtools.base.settings import Reading, Tokenization
from tiedtools.cli.command import Answer, command
from tiedtools.cli.options import as_option, explicit, flag, integer, json_option, option, options_of, together
from tiedtools.cli.queries import progress_bar
from tiedtools.cli.report import show_messages
from tiedtools.cli.shared import TEXT_OPTIONS, data_option, errors_option, seed_option, texts_argument
from tiedtools.cli.training import settings_of
from tiedtools.files.output import open_packed
from tiedtools.parallel import ranks
from tiedtools.text import datasets
from tiedtools.text.parts import shares
from tiedtools.text.phrases import Phrases
from tiedtools.text.raw import Raw, joined, prepared
from tiedtools.text.sources import shown

output_option = option("output", default="-", help="Output file; - is standard output.")


@command("tokenize", "Split raw text into words.", reads="texts", writes="output")
@texts_argument
@together(*options_of(Tokenization), *options_of(Reading, "field", "errors"))
@option("threads", type=click.IntRange(1, 1024), help="Number of processes.  [default: all available cores]")
@output_option
def tokenize(texts: list[str], field: str | None, errors: str, threads: int | None, **rules: Any) -> Iterator[Answer]:
    """Write the words of TEXT, separated by spaces, in the lines of TEXT.

    Words follow Unicode (UAX #29), in NFC: don't, l'homme, 3.14, foo_bar, example.com, and U.S.A are words, and
    each mark of punctuation is one. Addresses, #tags, @names, `<unk>`, `<num>`, and `<url>` remain in one piece. The
    words do not depend on the number of processes, and tokenizing them again does not change them.

    TEXT may be compressed (.gz .bz2 .xz .zst); `-` or no argument reads standard input. With --field, TEXT is JSON
    lines, CSV, or TSV, one document a record. The commands that train apply the same with --tokenize, and store it in
    the model. Requires regex: pip install "tiedtools[text]".
    """
    sources = (Raw(text, Tokenization(**rules), field, errors, processes=threads) for text in texts)
    yield from map(Answer, joined(sources))


@command("vocab", "Count words, in word2vec's format.", reads="texts", writes="output")
@texts_argument
@together(*TEXT_OPTIONS)
@option("output", also="save-vocab", default="-", help="Output file; - is standard output.")
@json_option("Write one JSON object instead of lines.")
def vocab(texts: list[str], min_count: int, max_vocab: int | None, errors: str, **raw: Any) -> Iterator[Answer]:
    """Count the words of TEXT and write the vocabulary in word2vec.c's format: `word count` per line, sorted by count.

    TEXT may be compressed (.gz .bz2 .xz .zst); `-` or no argument reads standard input. The first line is `</s>` with
    the number of line ends. Words with equal counts are in order of first occurrence.
    """
    from tiedtools.text.counting import count, count_shares

    if mpi := ranks.current:
        share = prepared(shares(texts, mpi.size)[mpi.rank], **raw, errors=errors, processes=1)
        result = count_shares(share, mpi, errors)
    else:
        result = count(prepared(texts, **raw, errors=errors), errors)
    if result is None:  # rank 0 has the counts of all ranks
        return
    table, tokens = result
    vocabulary, _ = table.vocab(min_count, max_vocab)
    totals = {"tokens": tokens, "words": len(table), "kept": len(vocabulary), "kept_tokens": vocabulary.total}
    yield Answer(vocabulary.write, {**totals, "vocab": list(zip(vocabulary.words, vocabulary.counts.tolist()))})
    log.info(f"{tokens:,} tokens, {len(table):,} words, {len(vocabulary):,} kept with {vocabulary.total:,} tokens")


@command("phrases", "Join phrases, as word2phrase.", reads="texts load", writes="output save")
@texts_argument
@together(
    TEXT_OPTIONS[0],
    *options_of(Phrases, threshold=dict(type=float, multiple=True, metavar="X")),
    *options_of(Reading, "tokenize", "field"),
    option("load", metavar="FILE", help="Join the phrases in FILE, written by --save, instead of learning phrases."),
    option("save", metavar="FILE", help="Write the phrases to FILE, tab-separated: pass, phrase, words, score, count."),
    output_option,
    integer("debug", 2, "Verbosity. 0: warnings; 1 or more: also messages.", least=0, metavar=None),
    errors_option,
)
@click.pass_context
def phrases(
    ctx: click.Context, /, texts: list[str], load: str | None, save: str | None, debug: int, errors: str,
    tokenize: str | None, field: str | None, **_: Any
) -> Answer:  # fmt: skip
    """Learn the phrases of TEXT, and write TEXT with the words of each phrase joined, such as new_york.

    TEXT has one sentence per line, with words separated by whitespace unless --tokenize is given, and may be compressed
    (.gz .bz2 .xz .zst); `-` or no argument reads standard input. A pair of words is a phrase if its score is above the
    threshold. Phrases are joined from left to right, each word in at most one, so that longer phrases need several
    passes: --threshold 200 --threshold 100. The options of word2phrase are accepted with the same meaning, and the
    scores are the same. The commands that train join the phrases of a list with --phrases, and store it in the model.
    """
    show_messages(logging.INFO if debug else logging.WARNING)
    settings = {name: value for name, value in settings_of(ctx).items() if name in vars(Phrases)}
    if load and settings:
        raise click.UsageError(f"--load joins phrases as they were learned: omit {as_option(next(iter(settings)))}")
    found = Phrases.load(load) if load else Phrases(**settings)
    with open_packed(save) if save else contextlib.nullcontext() as saved:
        sources = prepared(texts, tokenize, field, errors, found if load else None)
        pieces = joined(sources) if load else found.learn(sources, errors)
        if saved:
            found.write(saved)
    return Answer(lambda file: file.writelines(pieces))


@command("segment", "Split words into morphs, syllables, or characters.", reads="text load", writes="output save")
@click.argument("text", default="-", metavar="[TEXT]")
@flag("morphs", "Split into Morfessor's morphs, learned from the words of TEXT or read with --load.")
@flag("syllables", "Split into Pyphen's syllables.")
@flag("chars", "Split into characters.")
@option("load", metavar="FILE", help="Use the morphs in FILE, written by --save or by `morfessor-train -S`.")
@option("save", metavar="FILE", help="Write the morphs learned to FILE, in Morfessor's text format.")
@option("language", default="en_US", metavar="CODE", help="Language of the hyphenation patterns for --syllables.")
@option("separator", default="@@", help="Mark at the end of each subword that does not end its word.")
@flag("types", "Print each different word once, as `word<TAB>sub sub`.")
@output_option
@seed_option
@errors_option
def segment(
    text: str, morphs: bool, syllables: bool, chars: bool, load: str | None, save: str | None, language: str,
    separator: str, types: bool, seed: int, errors: str,
) -> Iterator[Answer]:  # fmt: skip
    """Split the words of TEXT into morphs, syllables, or characters.

    TEXT may be compressed (.gz .bz2 .xz .zst); `-` or no argument reads standard input. Each line of TEXT is a line of
    the output, written before the next is read, with subwords separated by spaces: `un@@ happi@@ ness`. As with
    subword-nmt, `sed 's/@@ //g'` restores the words; with --syllables, without their hyphens.

    Morphs are learned by Morfessor 2.0 Baseline from the different words of TEXT, about 1 to 2 ms per word, after the
    whole TEXT has been read. To split other texts in the same way, --save the morphs and --load them. Learning requires
    Morfessor and --syllables requires Pyphen: pip install "tiedtools[subwords]".
    """
    from tiedtools.evaluation.lexicon import lines as lines_of
    from tiedtools.text import morphs as morfessor
    from tiedtools.text import subwords
    from tiedtools.text.counting import NO_WORD
    from tiedtools.text.encoding import encode

    morphs = morphs or bool(load)
    if morphs + syllables + chars != 1:
        raise click.UsageError("choose one of --morphs, --syllables, and --chars; --load implies --morphs")
    learning = morphs and not load
    wrong = dict.fromkeys(("save", "seed"), "requires --morphs, without --load") if not learning else {}
    wrong |= {} if syllables else {"language": "requires --syllables"}
    wrong |= {"separator": "cannot be used with --types"} if types else {}
    for name in [name for name in wrong if name in explicit(click.get_current_context())]:
        raise click.UsageError(f"--{name} {wrong[name]}")
    with open_packed(save) if save else contextlib.nullcontext() as saved:
        lines = (words for _, words in lines_of(text, errors))
        if syllables:
            split = subwords.Syllables(language).load().segment
        elif chars:
            split = list
        elif load:
            split = morfessor.Lexicon.of(morfessor.read(load)).segment
        else:
            morfessor.morfessor()  # before the text is read
            encoded = encode([text], errors=errors, end=NO_WORD)  # a line of the text is a line of the output
            watch = functools.partial(progress_bar, unit=" words")  # of each epoch
            lines, analyses = encoded.sentences(), morfessor.learn(encoded.vocab.words[1:], seed, watch)
            if saved:
                morfessor.write(saved, analyses)
            split = morfessor.Lexicon.of(analyses).segment
    shown_as = subwords.types(lines, split) if types else subwords.marked(lines, split, separator, shown(text))
    yield from map(Answer, shown_as)


@click.group(short_help="Download and locate public test sets and texts.")
def data() -> None:
    """Download and locate public test sets and texts.

    Sets are searched for in --data, in TIEDTOOLS_DATA, and among the downloads in TIEDTOOLS_CACHE (default: a tiedtools
    folder in the user's cache), in this order; in each as GROUP/FILE and as FILE, plain or compressed.
    """


completed = lambda ctx, _, start: [name for name in (*datasets.groups(), *datasets.DATASETS) if name.startswith(start)]
names_argument = click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=completed)
GROUPS = "wordsim, ws353, semeval17, de, it, ru, ptb, wikitext2, and multi30k are groups of sets."
NAMES = f"`tiedtools data list` lists the names; {GROUPS}"


@command("get", None, data, epilog=NAMES)
@names_argument
@option("to", type=click.Path(file_okay=False), help="Save to this folder, as GROUP/FILE, instead of the cache.")
def get(names: tuple[str, ...], to: str | None) -> Iterator[Answer]:
    """Download data sets, verify their SHA-256, unpack them if packed, and print their paths.

    Files that exist unchanged are not downloaded again. TIEDTOOLS_MIRROR, a base URL or a folder, replaces the sources;
    it contains the files under the last component of their URLs.
    """
    for name in datasets.expand(names):
        yield Answer(f"{datasets.download(name, to)}\n")


@command("list", "List the data sets and their locations.", data)
@data_option
@json_option("Print one JSON object, which includes URL and SHA-256.")
def list_sets(data: str | None) -> Answer:
    """List the data sets, tab-separated: name, GROUP/FILE, download size in bytes, license, and local path.

    An unknown size, and the path of a set that is not found, is `-`. The license is given to the best of our knowledge;
    verify it before use.
    """
    lines, sets = [], {}
    for name, entry in datasets.DATASETS.items():
        path = datasets.find(name, data)
        lines.append("\t".join([name, entry.file, str(entry.size or "-"), entry.license, str(path or "-")]) + "\n")
        sets[name] = {**dataclasses.asdict(entry), "path": path and str(path)}
        del sets[name]["sections"]  # titles
    return Answer("".join(lines), sets)


@command("path", None, data, epilog=NAMES)
@names_argument
@data_option
def path(names: tuple[str, ...], data: str | None) -> Answer:
    """Print the paths of data sets, one per line."""
    return Answer("".join(f"{path}\n" for path in datasets.locate(datasets.expand(names), data).values()))
