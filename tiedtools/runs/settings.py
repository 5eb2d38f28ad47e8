"""Settings of a training run: the files that it writes. Imports nothing heavy."""

import dataclasses

from tiedtools.base.settings import Checked, Range, documented, setting


@documented()
@dataclasses.dataclass(frozen=True)
class Files(Checked):
    """Paths of the files that a training run writes; None: not written, `-`: standard output."""

    output: str | None = setting(None)(
        "Output file for the vectors; - is standard output. NAME.npy, NAME.safetensors, or NAME.tsv is written in that"
        " format, with the words beside it."
    )
    write: str = setting("in")("Vectors to write: input, output, their sum, or their concatenation.")
    binary: bool = setting(False)("1: write word2vec's binary format; 0: text.")
    save_model: str | None = setting(None, metavar="FILE")(
        "Write the model (parameters, vocabulary, and options) to FILE in .npz format."
    )
    save_vocab: str | None = setting(None, metavar="FILE")("Write the vocabulary to FILE, one `word count` per line.")
    checkpoint: str | None = setting(None, metavar="FILE")(
        "Write a checkpoint to FILE after each epoch and on interruption."
    )
    checkpoint_minutes: float = setting(10.0, Range(0))("Also checkpoint every N minutes; 0 disables.")
    resume: bool = setting(False)("Resume from the file of `checkpoint` if it exists; otherwise start from scratch.")
    log_json: str | None = setting(None, metavar="FILE")(
        "Write the metrics of each epoch to FILE, one JSON object per line."
    )
    manifest: str | None = setting(None, metavar="FILE")(
        "Also write the run's manifest (command, inputs, environment) to FILE; see `tiedtools rerun`."
    )
    no_manifest: bool = setting(False)("Do not write a .run.json manifest next to the vectors or the model.")
