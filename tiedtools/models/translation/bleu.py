"""BLEU of translations (Papineni et al. 2002), by sacrebleu (Post 2018)."""

from typing import Any, NamedTuple

from tiedtools.base.errors import TiedtoolsError

TOKENIZERS = "none", "13a", "intl", "char", "zh"  # those of sacrebleu that need no other library


class Bleu(NamedTuple):
    """BLEU in percent; sacrebleu's line about it, and the signature, which says how it was computed."""

    score: float
    line: str
    signature: str
    details: dict[str, Any]


def bleu(hypotheses, references, tokenize="none", lowercase=False):
    """Return the Bleu of translations.

    hypotheses  list of str
    references  one or several lists of str, as long
    tokenize    one of TOKENIZERS; "none": split at blanks, for texts that are tokenized
    lowercase   ignore case

    Raises TiedtoolsError if sacrebleu is not installed, and for no or differently many translations.
    """
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        raise TiedtoolsError('BLEU needs sacrebleu: pip install "tiedtools[nmt]"') from None
    if not hypotheses:
        raise TiedtoolsError("no translations; give at least one line")
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)  # force: no advice on tokenized texts
    found, signature = metric.corpus_score(hypotheses, references), str(metric.get_signature())
    details = dict(
        precisions=found.precisions, brevity_penalty=found.bp, words=found.sys_len, reference_words=found.ref_len
    )
    return Bleu(found.score, found.format(signature=signature), signature, details)
