"""Evaluate and compare word vectors: `eval-analogy`, `eval-sim`, and `compare`."""

from typing import Any

import click

from tiedtools.cli.command import Answer, command, tables, warn_idle
from tiedtools.cli.options import Decorator, choice, integer, json_option, option, together
from tiedtools.cli.queries import show_progress
from tiedtools.cli.shared import case_option, data_option, explained, reading_options
from tiedtools.cli.uncertainty import aligned
from tiedtools.text.datasets import locate

files_argument = click.argument("files", nargs=-1, required=True, metavar="VECTORS...")
COMPARED = ["difference", "low", "high", "p"]  # columns of tables of differences
SIM_DIFFERENCES = ["set", "pairs", "rho", "rho_first", *COMPARED, "file"]


def header(settings: dict[str, Any]) -> str:
    """Format a line of settings that are not None."""
    return f"# {' '.join(f'{name}={value}' for name, value in settings.items() if value is not None)}\n"


@command("eval-analogy", "Evaluate word vectors on analogy questions.", reads="files")
@files_argument
@option("set", "name", default="google-analogies", metavar="NAME|PATH",
        help="google-analogies, bats, or a file of `a b c d` or `a b` lines under `: section` lines.")  # fmt: skip
@data_option
@choice("method", "add mul both avg", "Scoring method: 3CosAdd, 3CosMul, or both; 3CosAvg for a set of pairs."
        "  [default: avg for pairs, otherwise add]")  # fmt: skip
@integer("restrict", None, "Use only the first N words, in questions and as answers; word2vec's script uses 30000.")
@case_option
@reading_options
@json_option("Print one JSON object instead of tables.")
def eval_analogy(
    files: tuple[str, ...], name: str, data: str | None, method: str | None, restrict: int | None, case: str,
    **reading: Any
) -> Answer:  # fmt: skip
    """Print the accuracy on analogy questions: a is to b as c is to d.

    VECTORS is a vector file, `-` for standard input, or MODEL:out for a model's output vectors. A question is covered
    if all four words have vectors; other questions are skipped. The answer is the word x with the highest score, a, b,
    and c excluded, and is correct if it is d. The score is cos(x, b) - cos(x, a) + cos(x, c) (3CosAdd), or cos(x, b)
    cos(x, c) / (cos(x, a) + 0.001) with cosines shifted to 0..1 (3CosMul; Levy and Goldberg 2014).

    A set of pairs, such as bats, asks for the second word of each pair: the answer to a is the word with the highest
    cosine to a plus the mean offset of the other covered pairs of the section, a excluded (3CosAvg; Drozd et al. 2016).
    The vectors have unit length. Any of several second words, separated by `/`, is correct; the first that has a vector
    counts in offsets.

    The table has a line for each section, for all semantic and all syntactic sections, and for the total: number of
    questions, covered questions, correct answers, accuracy on covered questions (`-` if there are none), and its 95%
    Wilson interval. Sections whose names begin with "gram" count as syntactic, the others as semantic. Without
    syntactic sections, these two lines are omitted; bats has a line for each of its four types instead.

    With several files, a second table compares each file with the first, on the questions covered by both: the
    difference in accuracy, its 95% interval (Bonett and Price, paired proportions), and the two-sided p-value of
    McNemar's exact test. All intervals and p-values assume independent questions; since questions share words, the true
    uncertainty is larger.

    word2vec's compute-accuracy and gensim uppercase all words: an answer in another case is correct, and the first of
    several words that differ only in case represents them all in questions.

    A file of runs (`tiedtools w2v --runs`) has the mean accuracy over the runs on the whole text or, without these,
    over all runs, on the questions that every run covers, and its 95% interval over the runs; differences have Welch's
    interval over the runs of both files, and no p-value.
    """
    from tiedtools.evaluation.analogysets import evaluate, read_set
    from tiedtools.evaluation.similarity import INTERVAL
    from tiedtools.vectors.runs import is_runs
    from tiedtools.vectors.vectors import Vectors, refuse_absent

    refuse_absent(files, reading["format"])
    show_progress()
    ((_, path),) = locate([name], data).items()
    questions, policy = read_set(path), {"set": name, "restrict": restrict, "case": case, "interval": INTERVAL}
    if any(map(is_runs, files)):
        from tiedtools.evaluation.runsets import analogies, read_runs

        lines, differences = analogies(read_runs(files, **reading), questions, method, restrict, case)
        columns = ["section", "questions", "covered", "runs", "accuracy", "low", "high", "method", "file"]
        compared = ["section", "questions", "difference", "low", "high", "method", "file"]
        text = tables((columns, lines), (compared, differences))
        return Answer(text, {**policy, "results": lines, "differences": differences})
    read = lambda file: Vectors.read(file, **reading)
    results, differences = evaluate(files, read, questions, method, restrict, case)
    columns = ["section", "questions", "covered", "correct", "accuracy", "low", "high", "method", "file"]
    compared = ["section", "questions", "accuracy", "accuracy_first", *COMPARED, "method", "file"]
    lines, others = ([{**each, **line} for each in of for line in each["sections"]] for of in (results, differences))
    text = header(policy) + tables((columns, lines), (compared, others))
    return Answer(text, {**policy, "set_path": str(path), "results": results, "differences": differences})


def set_options(default: str) -> Decorator:
    """Return the options shared by commands that use similarity sets; `default` is appended to the help of --set."""
    return together(
        option("set", "sets", multiple=True, metavar="NAME|PATH", help="Similarity set: simlex, men, rw, verb143,"
               " mturk771, simverb, ws353-sim, ws353-rel, mturk287, or another of `tiedtools data list`, or a file"
               " of `word word score` lines; repeatable." + default),
        data_option,
        choice("oov", "skip zero mean compose", "Pairs with an out-of-vocabulary word: skip them, use cosine 0, use the"
               " mean of all vectors for the word, or compose its vector with a model of fastText or one trained with"
               " `--subwords`.", "skip"),
        case_option,
        integer("bootstrap", 1000, "Number of bootstrap resamples for each 95% interval, and of permutations for each"
                " p-value; 0 disables both.", least=0, most=10**7),
    )  # fmt: skip


@command("eval-sim", "Evaluate word vectors on word-similarity sets.", reads="files")
@files_argument
@set_options("  [default: the nine named here, as far as found; if none is, all nine are downloaded]")
@integer("seed", 1, "Random seed of the resamples and permutations.", least=0, metavar=None)
@reading_options
@json_option("Print one JSON object instead of tables.")
def eval_sim(
    files: tuple[str, ...], sets: tuple[str, ...], data: str | None, oov: str, case: str, bootstrap: int, seed: int,
    **reading: Any
) -> Answer:  # fmt: skip
    """Evaluate word vectors: print Spearman's rho between cosine similarities and human similarity scores.

    VECTORS is a vector file, `-` for standard input, or a saved model: MODEL for its input vectors, MODEL:out for its
    output vectors. The table has a line for each set: number of pairs, covered pairs (both words have a vector),
    out-of-vocabulary words (also if composed), rho (ties share their average rank), and the bounds of its 95%
    bootstrap confidence interval. If there are several sets, the line `mean` is the unweighted mean over them. An
    undefined rho is `-`; the reason is on stderr. A resample with undefined rho counts as -1 for the lower bound and
    as 1 for the upper.

    With several files, a second table compares each file with the first on the pairs covered by both: the difference
    in rho, its paired bootstrap interval, and the two-sided p-value of a paired permutation test. With several sets,
    the line `mean` compares the means over the sets.

    A file of runs (`tiedtools w2v --runs`) has the mean rho over the runs on the whole text or, without these, over all
    runs, on the pairs that every run covers, its 95% interval over the runs (low, high), and the bootstrap interval of
    the mean over pairs (pairs_low, pairs_high); differences have Welch's interval over the runs of both files, and
    no p-value. Neither table has a line `mean`.
    """
    from tiedtools.evaluation.similarity import INTERVAL, evaluate, read_set
    from tiedtools.models.composing import needed
    from tiedtools.vectors.runs import is_runs
    from tiedtools.vectors.vectors import Vectors, refuse_absent

    refuse_absent(files, reading["format"])  # before downloading sets
    sets = locate(sets, data)
    policy: dict[str, Any] = {"case": case, "bootstrap": bootstrap, "seed": seed, "interval": INTERVAL}
    if any(map(is_runs, files)):
        if oov != "skip":
            raise click.UsageError("--oov does not apply to files of runs; omit it")
        from tiedtools.evaluation.runsets import read_runs, similarities

        loaded = [read_set(path, name) for name, path in sets.items()]
        lines, differences = similarities(read_runs(files, **reading), loaded, case, bootstrap, seed)
        columns = ["set", "pairs", "covered", "runs", "rho", "low", "high", "pairs_low", "pairs_high", "file"]
        text = tables((columns, lines), (["set", "pairs", "difference", "low", "high", "file"], differences))
        return Answer(text, {**policy, "results": lines, "differences": differences})
    read = lambda file: Vectors.read(file, **reading)
    results, differences = evaluate(files, read, sets, oov, case, bootstrap, seed, needed)
    policy = {"oov": oov, **policy}
    lines = []
    for result in results:
        mean = {"set": "mean", **{figure: result[f"mean_{figure}"] for figure in ("rho", "low", "high")}}
        lines += [{**line, "file": result["file"]} for line in [*result["sets"], *[mean] * (len(sets) > 1)]]
    columns = ["set", "pairs", "covered", "oov_words", "rho", "low", "high", "file"]
    text = header(policy) + tables((columns, lines), (SIM_DIFFERENCES, differences))
    paths = {name: str(path) for name, path in sets.items()}
    return Answer(text, {**policy, "set_paths": paths, "results": results, "differences": differences})


@command("compare", "Measure the similarity of two sets of word vectors.", reads="a b")
@click.argument("a")
@click.argument("b")
@integer("words", 10_000, "Maximum number of shared words whose pairs are ranked; a random sample if there are more.",
         least=2, python_name="limit")  # fmt: skip
@integer("top", 10, "Number of nearest neighbors per word.", also="k")
@set_options("")
@integer("seed", 1, "Random seed of sampling and resampling.", least=0, metavar=None)
@reading_options
@json_option("Print one JSON object instead of tables.")
def compare(
    a: str, b: str, limit: int, top: int, sets: tuple[str, ...], data: str | None, oov: str, case: str, bootstrap: int,
    seed: int, **reading: Any
) -> Answer:  # fmt: skip
    """Compare two files of word vectors, A and B, on the words they share.

    A or B may be `-` for standard input, or a matrix of a model file, MODEL:in or MODEL:out.

    \b
    cosines_rho        Spearman's rho of the cosines of all pairs of --words words
    subspace_distance  distance between the column spaces: 0 if one contains the
                       other, 1 if they are orthogonal
    subspace_random    expected distance between random spaces of the same ranks
    neighbors_shared   proportion of a word's N nearest neighbors found in both
    neighbors_jaccard  Jaccard index of these sets of neighbors

    cosines_rho is that of Press and Wolf (2017, table 4), subspace_distance that of Inan et al. (2017, appendix B).
    Measures of neighbors are means over at most 1000 words.

    low and high bound the 95% confidence interval of the value on all shared words; they are `-` if all words were
    used. The interval of rho is from the infinitesimal jackknife (pairs share words), that of the neighbor measures
    from their variance over words.

    With --set, a second table compares B with A on similarity sets, as `tiedtools eval-sim A B`.

    If A or B is a file of runs (`tiedtools w2v --runs`), run k of A is compared with run k of B, or a single set of
    vectors with each run; the table has the mean over these pairs and its 95% interval over them.
    """
    from tiedtools.evaluation import comparison, similarity
    from tiedtools.models.composing import needed
    from tiedtools.vectors.runs import is_runs
    from tiedtools.vectors.vectors import Vectors

    if not sets:
        warn_idle(click.get_current_context(), dict.fromkeys(("oov", "case", "bootstrap"), "without --set"))
    if is_runs(a) or is_runs(b):
        if sets:
            raise click.UsageError("for files of runs, compare similarity sets with eval-sim")
        from tiedtools.evaluation.runsets import comparisons, runs_of

        first, second = runs_of(a, **reading), runs_of(b, **reading)
        with explained(a, b):
            means = comparisons(first, second, limit, top, seed)
        return Answer(aligned(means), {"a": a, "b": b, "top": top, "seed": seed, "results": means})
    show_progress()
    sets = locate(sets, data) if sets else {}
    one, two = (Vectors.read(path, **reading) for path in (a, b))
    with explained(a, b):
        measures = comparison.compare(one, two, limit, top, seed)
    policy: dict[str, Any] = {"seed": seed, "interval": similarity.INTERVAL}
    differences: list[dict[str, Any]] = []
    if sets:
        policy |= {"oov": oov, "case": case, "bootstrap": bootstrap}
        _, differences = similarity.evaluate([a, b], {a: one, b: two}.get, sets, oov, case, bootstrap, seed, needed)
    cosines, spaces, near = measures["cosines"], measures["subspaces"], measures["neighbors"]
    settings = {name: measures[name] for name in ("words", "words_other", "common")}
    settings |= {"rank": spaces["rank"], "rank_other": spaces["rank_other"], "top": top, **policy}
    lines = [
        {"measure": "cosines_rho", **cosines, "value": cosines["rho"]},
        {"measure": "subspace_distance", "value": spaces["distance"], "words": measures["common"]},
        {"measure": "subspace_random", "value": spaces["random"], "words": measures["common"]},
        {"measure": "neighbors_shared", **near["share"], "words": near["words"]},
        {"measure": "neighbors_jaccard", **near["jaccard"], "words": near["words"]},
    ]
    columns = ["measure", "value", "low", "high", "words"]
    text = header(settings) + tables((columns, lines), (SIM_DIFFERENCES, differences))
    paths = {name: str(path) for name, path in sets.items()}
    return Answer(text, {"a": a, "b": b, **policy, "set_paths": paths, **measures, "differences": differences})
