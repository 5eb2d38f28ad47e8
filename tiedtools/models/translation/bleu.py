"""BLEU of translations (Papineni et al. 2002), by sacrebleu (Post 2018)."""

from typing import Any, NamedTuple

from tiedtools.base.errors import TiedtoolsError, library


class Bleu(NamedTuple):
    """BLEU in percent, sacrebleu's report line and signature, and a dict of precisions, brevity penalty, lengths."""

    score: float
    line: str
    signature: str
    details: dict[str, Any]


def bleu(hypotheses: list[str], references: list[list[str]], tokenize: str = "none", lowercase: bool = False) -> Bleu:
    """Return the Bleu of translations.

    references  one or several lists, each as long as `hypotheses`
    tokenize    one of sacrebleu's tokenizers; "none": split at spaces, for tokenized texts
    lowercase   ignore case

    Raises TiedtoolsError if sacrebleu is not installed, and for no translations.
    """
    BLEU = library("sacrebleu.metrics", "BLEU needs sacrebleu", "nmt").BLEU
    if not hypotheses:
        raise TiedtoolsError("no translations; give at least one line")
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)  # force: no advice on tokenized texts
    result, signature = metric.corpus_score(hypotheses, references), str(metric.get_signature())
    details = dict(
        precisions=result.precisions, brevity_penalty=result.bp, words=result.sys_len, reference_words=result.ref_len
    )
    return Bleu(result.score, result.format(signature=signature), signature, details)
