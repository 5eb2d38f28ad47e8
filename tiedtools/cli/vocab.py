"""`tiedtools vocab`: count the words of a text."""

import click

from tiedtools.cli.options import TEXT_OPTIONS, json_option, option, texts_argument, together
from tiedtools.text.sources import read_once


@click.command("vocab", short_help="Count words, in word2vec's format.")
@texts_argument
@together(*TEXT_OPTIONS)
@option(
    "output",
    also="save-vocab",
    default="-",
    help="Output file; - is standard output.",
)
@json_option("Write one JSON object instead of lines.")
def command(texts, train, min_count, max_vocab, errors, output, as_json):
    """Count the words of TEXT and write the vocabulary in word2vec.c's format: `word count` per line, sorted by count.

    TEXT may be compressed (.gz .bz2 .xz .zst); `-` or no argument reads standard input. The first line is `</s>` with
    the number of lines. Words with equal counts are in order of first occurrence.
    """
    import json

    from tiedtools.base.messages import log
    from tiedtools.files.output import open_packed, refuse_clashes
    from tiedtools.parallel import ranks
    from tiedtools.text.counting import count
    from tiedtools.text.merging import count_shares
    from tiedtools.text.parts import shares

    texts = [*texts, *train] or ["-"]
    read_once(*texts)
    refuse_clashes([output], texts)
    together = ranks.current
    if together and together.rank:
        count_shares(shares(texts, together.size)[together.rank], together, errors)
        return
    with open_packed(output) as file:
        if together:
            table, tokens = count_shares(shares(texts, together.size)[0], together, errors)
        else:
            table, tokens = count(texts, errors)
        vocab, _ = table.vocab(min_count, max_vocab)
        if as_json:
            totals = {"tokens": tokens, "words": len(table), "kept": len(vocab), "kept_tokens": vocab.total}
            pairs = list(zip(vocab.words, vocab.counts.tolist()))
            file.write(json.dumps({**totals, "vocab": pairs}).encode() + b"\n")
        else:
            vocab.write(file)
    log.info(f"{tokens:,} tokens, {len(table):,} words, {len(vocab):,} kept with {vocab.total:,} tokens")
