"""`tiedtools translate`: translate lines, or score given translations."""

import click

from tiedtools.cli.options import errors_option, flag, given, json_option, option


@click.command("translate", short_help="Translate lines, or score given translations.")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[TEXT]")
@option("beam", type=click.IntRange(1, 1000), default=5, help="Beam size: hypotheses per line; 1: greedy search.")
@flag("normalize", "Choose, and score, by log probability per word or symbol, line end included.")
@option(
    "max-length",
    type=click.IntRange(1, 10**5),
    default=200,
    metavar="N",
    help="End translations after N words or symbols.",
)
@option(
    "n-best",
    type=click.IntRange(1),
    metavar="N",
    help="Print the N best translations of each line with their scores, as `LINE ||| TRANSLATION ||| SCORE`; LINE"
    " counts from 0, as in Moses.",
)
@option("force", metavar="TARGET", help="Score the lines of TARGET as translations of those of TEXT instead.")
@option(
    "align",
    metavar="FILE",
    help="Write the attention weights of each translation to FILE, one JSON object per line; see `tiedtools plot"
    " attention`.",
)
@flag("no-unk", "Never write `<unk>`.")
@option(
    "batch",
    type=click.IntRange(1, 4096),
    default=64,
    metavar="N",
    help="Batch size in lines; 1 translates each line immediately.",
)
@errors_option
@json_option("Print one JSON object per line or translation.")
@click.pass_context
def command(ctx, path, text, beam, normalize, max_length, n_best, force, align, no_unk, batch, errors, as_json):
    """Translate each line of TEXT with the translation model in MODEL, in order.

    TEXT may be compressed; `-` or no argument reads standard input. Lines of similar length are translated together.
    Scores are log10 probabilities, line end included; with --normalize, per word or symbol. With --force, one score is
    printed for each line.

    A model trained with --bpe reads and writes plain words. Words outside the vocabulary are read as `<unk>`. Empty
    lines stay empty. Of a line with more than 1,000 words or symbols, only the first 1,000 are read, with a warning.
    """
    import contextlib

    from tiedtools.base.messages import to_json
    from tiedtools.evaluation.lexicon import lines
    from tiedtools.files.output import STDOUT, open_packed, refuse_clashes
    from tiedtools.models.families import load_translator
    from tiedtools.models.translation.interpreter import Interpreter, side_by_side
    from tiedtools.text.sources import read_once, shown

    if force is not None:
        for name in sorted(given(ctx) & {"beam", "max_length", "n_best", "no_unk"}):
            raise click.UsageError(f"--{name.replace('_', '-')} has no effect on the translations given by --force")
    if (n_best or 1) > beam:
        raise click.UsageError(f"--n-best {n_best} needs a --beam of at least {n_best}")
    if align in STDOUT:
        raise click.UsageError("--align cannot be standard output, which has the translations; give a file name")
    inputs = [text, path, *([] if force is None else [force])]
    read_once(*inputs)
    refuse_clashes([align], inputs)
    model = load_translator(path)
    searching = dict(beam=beam, max_length=max_length, banned=1 if no_unk else None)
    interpreter = Interpreter(model, batch, normalize, align is not None, **searching)
    source = lines(text, errors)
    if force is None:
        found = (best[: n_best or 1] for best in interpreter.translations(source))
    else:
        pairs = side_by_side(source, lines(force, errors), (shown(text), shown(force)))
        found = ([scored] for scored in interpreter.scores(pairs))
    with open_packed(align) if align else contextlib.nullcontext() as file:
        for number, best in enumerate(found, 1):
            for rank, translation in enumerate(best, 1):
                where = {"line": number, **({"rank": rank} if n_best else {})}
                score = f"{translation.logprob:.6f}"
                if as_json:
                    click.echo(to_json({**where, "text": translation.text, "logprob": translation.logprob}))
                elif n_best:
                    click.echo(f"{number - 1} ||| {translation.text} ||| {score}")
                else:
                    click.echo(translation.text if force is None else score)
                if file:
                    file.write((to_json({**where, **translation.alignment()}) + "\n").encode())
    for lexicon in interpreter.source, interpreter.target:
        lexicon.tell_oovs()
