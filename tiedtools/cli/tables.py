"""Print aligned tables to standard output."""

import click


def echo_table(columns, lines):
    """Print aligned columns with numbers right-aligned; file names come last because they may contain spaces."""
    cells = [columns] + [[as_cell(line.get(column)) for column in columns] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for first, *numbers, file in cells:
        padded = [f"{number:>{width}}" for number, width in zip(numbers, widths[1:])]
        click.echo("  ".join([f"{first:<{widths[0]}}", *padded, file]))


def as_cell(value):
    """Format a table cell: floats with 4 decimals, None as `-`."""
    return "-" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
