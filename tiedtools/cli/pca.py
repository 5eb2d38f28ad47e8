"""`tiedtools pca`: principal component analysis of word vectors."""

import click

from tiedtools.cli.options import json_option, option, reading_options
from tiedtools.text.sources import read_once


@click.command(short_help="Report the variance retained by principal components.")
@click.argument("files", nargs=-1, required=True, metavar="VECTORS...")
@option(
    "components", is_flag=True, help="Print the retained variance for each number of components.", show_default=False
)
@option("plot", metavar="FILE", help="Plot the curves to FILE (.png or .svg); requires tiedtools[plot].")
@reading_options
@json_option("Print one JSON object with the whole curves.")
def command(files, components, plot, format, errors, skip_bad, as_json):
    """Print how many principal components retain 50, 75, 90, 95, and 99% of the variance of word vectors.

    VECTORS is a vector file, `-` for standard input, or a matrix of a model file, MODEL:in or MODEL:out. Words are
    weighted equally, and the mean vector is subtracted. With --components, print a line for each file and number of
    components: file, number, and proportion of variance retained, tab-separated.
    """
    import contextlib

    from tiedtools.base.messages import to_json
    from tiedtools.cli.tables import echo_table
    from tiedtools.evaluation.components import SHARES, components_for, retained_variance
    from tiedtools.vectors.vectors import Vectors

    read_once(*files)
    if components and as_json:
        raise click.UsageError("--json includes the curves; omit --components")
    with contextlib.ExitStack() as drawing:
        if plot is not None:
            from tiedtools.evaluation import pictures

            axes = drawing.enter_context(pictures.picture(plot))
        results = []
        for file in files:
            vectors = Vectors.read(file, format, errors, skip_bad)
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
