"""`tiedtools bench rnnlm`: measurement of all contenders, and the result table."""

from tiedtools.base.processor import processor_name
from tiedtools.base.version import __version__
from tiedtools.benchmark.rnnlmcontenders import Ours, contenders
from tiedtools.benchmark.rnnlmlimits import Machine
from tiedtools.benchmark.rounds import aligned, in_turns, peaks, spread


def measure(task, variants, rivals, threads, runs):
    """Train every contender for one epoch, `runs` times per number of threads; return the result that --json shows."""
    everyone = contenders(task, variants, rivals)
    widths = sorted({c.config.hidden + c.config.doc_dim for c in everyone if isinstance(c, Ours)})
    machine = Machine(task.text, task.classes, widths)
    tell = lambda result: f"{result['words_per_s']:,.0f} words/s"
    results = in_turns(everyone, threads, runs, lambda c, t: c.train(t), tell, machine.measure)

    rows, ours = [], {}
    for (c, t), found in results.items():
        row = dict(name=c.name, threads=t, **spread("words_per_s", (result["words_per_s"] for result in found)))
        speed = row["words_per_s"]
        if isinstance(c, Ours):
            ours.setdefault((c.hidden, t), speed)
            limit, bound, flops, moved = machine.limit_of(c.config, t)
            row |= dict(kflops=flops / 1e3, gflops=speed * flops / 1e9, bytes=moved)
            row |= dict(limit=limit, share=speed / limit, bound=bound)
        else:
            row["ratio"] = ours[c.hidden, t] / speed
            row["threads"] = 1 if c.alone else t
        rows.append(row | {name: found[-1][name] for name in ("nats",) if name in found[-1]})
    return dict(
        processor=processor_name(), words=task.text.train.size, vocabulary=len(task.text.vocab),
        classes=machine.classes, expected=machine.expected, bptt=task.bptt, block=task.block, runs=runs,
        gflops={t: machine.flops[t] / 1e9 for t in threads},
        gbytes={t: {width: machine.bytes[t, width] / 1e9 for width in widths} for t in threads},
        rows=rows,
    )  # fmt: skip


def table(result):
    """Format the result of `measure` as text."""
    r = result
    return "\n".join(
        [
            f"tiedtools {__version__} on {r['processor']}",
            f"{r['words']:,} words, vocabulary {r['vocabulary']:,}; {r['classes']} classes, {r['expected']:.1f} words"
            f" scored in one; bptt {r['bptt']}, block {r['block']}; {r['runs']} run{'s' * (r['runs'] > 1)}",
            "",
            *aligned(r["rows"]),
            "",
            *peaks(r, str),
            "",
        ]
    )
