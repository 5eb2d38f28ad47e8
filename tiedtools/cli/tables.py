"""Results on standard output: tables and JSON."""

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


def to_json(value):
    """JSON text, with null for NaN and infinities, which JSON does not have."""
    import json
    from math import isfinite

    def clean(value):
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [clean(item) for item in value]
        return None if isinstance(value, float) and not isfinite(value) else value

    return json.dumps(clean(value))
