"""Tables on standard output."""

import click


def echo_table(columns, lines):
    """Print aligned columns, numbers to the right; the file comes last since its name may hold blanks."""
    cells = [columns] + [[as_cell(line.get(column)) for column in columns] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for first, *numbers, file in cells:
        padded = [f"{number:>{width}}" for number, width in zip(numbers, widths[1:])]
        click.echo("  ".join([f"{first:<{widths[0]}}", *padded, file]))


def as_cell(value):
    return "-" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
