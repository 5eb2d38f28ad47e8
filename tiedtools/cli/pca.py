"""`tiedtools pca`: how many dimensions vectors make use of."""

import click

from tiedtools.cli.options import errors_option, format_option, json_option, option
from tiedtools.text.sources import read_once


@click.command(short_help="Variance that the principal components of vectors retain.")
@click.argument("files", nargs=-1, required=True, metavar="VECTORS...")
@option("components", is_flag=True, help="Print the share for each number of components instead.", show_default=False)
@option("plot", metavar="FILE", help="Draw the curves; FILE ends in .png or .svg. Needs the extra [plot].")
@format_option
@errors_option
@json_option("Print one JSON object with the whole curves.")
def command(files, components, plot, format, errors, as_json):
    """Principal components of word vectors: how many keep 50, 75, 90, 95 and 99 per cent of the variance.

    VECTORS are files of word vectors, `-` for standard input, or matrices of a model file, MODEL:in and
    MODEL:out. All words count alike; the mean vector is subtracted first. With --components, a line for each file
    and number of components: the file, the number and the share of variance retained, tab separated.
    """
    import contextlib

    from tiedtools.cli.tables import echo_table
    from tiedtools.evaluation.components import SHARES, components_for, retained_variance
    from tiedtools.figures import to_json
    from tiedtools.vectors.vectors import Vectors

    read_once(*files)
    if components and as_json:
        raise click.UsageError("--json has the curves already; leave --components out")
    with contextlib.ExitStack() as drawing:
        if plot is not None:
            from tiedtools.evaluation import pictures

            axes = drawing.enter_context(pictures.picture(plot))
        results = []
        for file in files:
            vectors = Vectors.read(file, format, errors)
            retained = retained_variance(vectors.matrix)
            wanted = {f"{share:.0%}": count for share, count in zip(SHARES, components_for(retained))}
            line = {"file": file, "words": len(vectors), "dim": vectors.dim, "components": wanted}
            results.append({**line, "retained": retained.tolist()})
        if plot is not None:
            pictures.retained(axes, [(result["file"], result["retained"]) for result in results])
    if as_json:
        click.echo(to_json({"results": results}))
    elif components:
        lines = [
            f"{result['file']}\t{k}\t{share:.6f}\n"
            for result in results
            for k, share in enumerate(result["retained"], 1)
        ]
        click.echo("".join(lines), nl=False)
    else:
        columns = ["words", "dim", *results[0]["components"], "file"]
        echo_table(columns, [{**result, **result["components"]} for result in results])
