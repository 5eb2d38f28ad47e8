"""Generate results.md from the measurements in results/: python docs/results.py

Each file in results/ is one table, an object with these fields:

    title, about    heading, and what was measured on what
    command         command line of each run; <...> are texts and models, {...} fields of a row (examples/papers.py)
    evaluate        command lines that evaluate the model of a run, likewise; a row may have its own of both
    machine, version, seeds, epochs     conditions, unless a run has its own
    rows            trained models: row (name), fields for the command, epochs (of a whole training, or of each of its
                    `sessions`), paper (the paper's figures), and runs, each with its seed, epochs, params, and
                    figures; column: the end of the name that is a column of the page's table
    figures         names of the figures that are shown of a row, in the order of the paper's
    tables          other figures: caption, columns, and rows; on the page as long as no row has a run, and if "page" is
                    not false
    brief           true: a sentence instead of a section
    comparable      why the figures are not comparable with the paper's; empty if they are
    seen            whether the paper's conclusion was seen
    finding         what three or more seeds show; with fewer seeds the field is called observed
    notes           further observations, not on the page

index.json lists the tables and figures of the papers, and the other measurements.
"""

import json
from pathlib import Path
from statistics import mean

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "results"
LABELS = {"simlex": "SimLex", "verb143": "Verb-143", "men": "MEN", "rw": "RW", "mturk771": "MTurk-771", "bleu": "BLEU"}


def load(name, folder=FOLDER):
    return json.loads((folder / f"{name}.json").read_text())


def dumps(value, indent=""):
    """Return JSON with a line for each field of the table, each row, and each run."""
    nested = lambda x: isinstance(x, list) and any(isinstance(y, dict | list) for y in x)
    inner = indent + " "
    if nested(value):
        return "[\n" + ",\n".join(inner + dumps(x, inner) for x in value) + f"\n{indent}]"
    if not isinstance(value, dict) or indent and not any(map(nested, value.values())):
        return json.dumps(value, ensure_ascii=False)
    flat = [f"{json.dumps(key)}: {dumps(x, inner)}" for key, x in value.items() if not nested(x)]
    deep = [f"{json.dumps(key)}: {dumps(x, inner)}" for key, x in value.items() if nested(x)]
    parts = [*filter(None, [", ".join(flat)]), *deep] if indent else flat + deep
    return "{" + f",\n{inner}".join(parts) + "}"


def seeds(data):
    """Return the seeds that all shown rows have, in order."""
    each = [{run["seed"] for run in row["runs"]} for row in done(data)]
    return sorted(set.intersection(*each)) if each else data.get("seeds", [])


def done(data):
    return [row for row in data.get("rows", []) if row["runs"]]


def whole(row):
    """Return the number of epochs of a whole training, or None if the schedule decides it."""
    return row["epochs"] and row["epochs"] * row.get("sessions", 1)


def progress(data):
    """Return how many of the rows were run, and which of them were cut short."""
    rows, run = data.get("rows", []), done(data)
    most = [(max(each.get("epochs") or 0 for each in row["runs"]), whole(row)) for row in run]
    short = sorted((epochs / of, epochs, of) for epochs, of in most if of and epochs < of)
    parts = [f"{len(run)} of {len(rows)} rows"] if 0 < len(run) < len(rows) else []
    if short:
        ends = dict.fromkeys(f"{epochs} of {of}" for _, epochs, of in (short[0], short[-1]))
        parts.append(f"{len(short)} cut short ({' to '.join(ends)} epochs)")
    return ", ".join(parts)


def state(data):
    if not done(data) and not data.get("tables"):
        return "not run" + (f": {data['comparable']}" if data["comparable"] else "")
    apart = data["comparable"] and f"not comparable: {data['comparable']}"
    return "; ".join(filter(None, [progress(data), apart, data["seen"]]))


def number(value):
    """Format a figure: millions, two decimals, or three below 1, where a last zero is left out."""
    if not isinstance(value, float):
        return f"{value / 1e6:.2f}M" if isinstance(value, int) and value >= 1e5 else value
    return (
        f"{value:.2f}".removesuffix("0") if abs(value) >= 1 else f"{value:.3f}".replace("0.", ".", 1).removesuffix("0")
    )


def trained(data):
    """Return the table of the rows that were run: (columns, rows)."""
    known = [name for name in data["figures"] if any(row["paper"].get(name) for row in done(data))]
    columns = ["", "parameters", "epochs", *(LABELS.get(name, name) for name in data["figures"])]
    columns.append(f"paper: {', '.join(LABELS.get(name, name) for name in known)}")
    rows = []
    for row in done(data):
        first, of = row["runs"][0], whole(row)
        epochs = first.get("epochs")
        found = [[run[name] for run in row["runs"] if run.get(name) is not None] for name in data["figures"]]
        name = row["row"] + (f" ({first['note']})" if first.get("note") else "")
        name += f", {len(row['runs'])} seeds" if len(row["runs"]) > 1 else ""
        paper = [number(row["paper"].get(name, "-")) for name in known if row["paper"]]
        cut = f"{epochs} of {of}" if epochs and of and epochs < of else epochs
        rows.append(
            [name, first.get("params"), cut, *(mean(x) if x else None for x in found), ", ".join(map(str, paper))]
        )
    return columns, rows


def lines_of(data, run=True):
    """Return the lines of a grid in which something, or nothing, was run: {line: {column: row}}."""
    lines = {}
    for row in data.get("rows", []):
        line = row["row"].removesuffix(row.get("column", "")).strip(" ,:")
        lines.setdefault(line, {})[row.get("column")] = row
    return {line: cells for line, cells in lines.items() if any(row["runs"] for row in cells.values()) == run}


def grid(data):
    """Return the table of rows that have a column, of those lines in which something was run: (columns, rows)."""
    lines = lines_of(data)
    columns = list(
        dict.fromkeys(row["column"] for row in data["rows"] if any(row in cells.values() for cells in lines.values()))
    )
    return ["", *columns], [
        [line, *(cell(data, cells.get(column)) for column in columns)] for line, cells in lines.items()
    ]


def cell(data, row):
    """Return the last figure of a row, the paper's in parentheses, parameters, and epochs if the run was cut short."""
    if row is None:
        return ""
    paper = row["paper"].get(data["figures"][-1])
    paper = f" ({number(paper)})" if paper else ""
    if not row["runs"]:
        return paper and f"not run{paper}"
    name = next(name for name in reversed(data["figures"]) if any(run.get(name) is not None for run in row["runs"]))
    found = [run[name] for run in row["runs"] if run.get(name) is not None]
    first, of = row["runs"][0], whole(row)
    parts = [("" if name == data["figures"][-1] else f"{name} ") + f"{number(mean(found))}{paper}"]
    parts += [f"{len(found)} seeds"] if len(found) > 1 else []
    parts += [str(number(first["params"]))] if "params" in first else []
    parts += [f"{first['epochs']} of {of} epochs"] if of and first["epochs"] < of else []
    return ", ".join([*parts, *filter(None, [first.get("note")])])


def table(columns, rows):
    """Return the lines of a table, without columns that are empty."""
    kept = [k for k in range(len(columns)) if k == 0 or any(row[k] not in ("", None) for row in rows)]
    cells = [["" if row[k] is None else number(row[k]) for k in kept] for row in rows]
    lines = [[columns[k] for k in kept], ["---"] * len(kept), *cells]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def claim(data):
    """Return the finding; with one or two seeds, what was observed, and of how many."""
    text = data.get("finding") or data.get("observed", "")
    count = 0 if data.get("finding") else len(seeds(data))
    return ("One seed: ", "Two seeds: ")[count - 1] + text if count in (1, 2) else text[:1].upper() + text[1:]


def section(name, data):
    """Return the lines of a table's section."""
    missing = [line for line in lines_of(data, False) if not any(run.startswith(f"{line},") for run in lines_of(data))]
    missing = f" Not run: {'; '.join(missing)}." if done(data) and missing else ""
    text = f"{data['about']} {claim(data)}{missing} [Data and commands](results/{name}.json)."
    lines = [f"### {data['title']}", "", text, ""]
    shown = grid if any("column" in row for row in data.get("rows", [])) else trained
    others = [(each["columns"], each["rows"]) for each in data.get("tables", []) if each.get("page", True)]
    tables = [shown(data)] if done(data) else others
    for each in tables:
        lines += [*table(*each), ""]
    return lines


def anchor(title):
    return "".join(c for c in title.lower() if c.isalnum() or c in "_ -").replace(" ", "-")


def page():
    """Return the text of results.md."""
    index = load("index")
    lines, sections = [*index["preface"], "", "## Papers", "", "| | state |", "|---|---|"], []
    for paper, items in index["papers"].items():
        lines.append(f"| **{paper}** | |")
        for item, name, *why in items:
            if name is None:
                lines.append(f"| {item} | {why[0]} |")
                continue
            data = load(name)
            if data.get("brief") or not done(data) and not data.get("tables"):
                at, text = f"results/{name}.json", f"{state(data)}. {claim(data)}"
            else:
                at, text = f"#{anchor(data['title'])}", state(data)
                sections += section(name, data)
            lines.append(f"| [{item}]({at}) | {text.strip()} |")
    lines += ["", "## Tables", "", *sections]
    for heading, names in index["other"].items():
        lines += [f"## {heading}", ""]
        tables = [load(name) for name in names]
        briefs = [(name, data) for name, data in zip(names, tables) if data.get("brief")]
        lines += [f"* [{d['title']}](results/{name}.json): {d['about']} {claim(d)}" for name, d in briefs] + [
            ""
        ] * bool(briefs)
        for name, data in zip(names, tables):
            lines += [] if data.get("brief") else section(name, data)
    return "\n".join(lines).rstrip() + "\n"


def write():
    (DOCS / "results.md").write_text(page())


if __name__ == "__main__":
    write()
