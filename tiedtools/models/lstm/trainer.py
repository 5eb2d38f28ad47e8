"""Training of LSTM language models from text files."""

from tiedtools.errors import Contradiction
from tiedtools.models.lstm.model import LstmLM
from tiedtools.models.lstm.settings import configure
from tiedtools.training.lmtrainer import LmTrainer
from tiedtools.training.trainer import BITS, TYING, refuse_twice
from tiedtools.training.windows import Windows


class LstmTrainer(LmTrainer):
    """Trains an LstmLM. Raises Contradiction if the model does not have the vectors to write."""

    Model, Batches = LstmLM, Windows
    configure = staticmethod(configure)
    advice = (
        "lower `size`, `hidden`, `batch`, `steps` or `max_vocab`, or raise `min_count`, or use `tying=tied` or"
        " `tying=linear`"
    )

    def __init__(self, config, schedule, *texts_and_files, **options):
        super().__init__(config, schedule, *texts_and_files, **options)
        self.width, self.samples = config.size, config.mc_samples
        refuse_twice(self.files.write, config.tying != "untied")
        if self.files.write == "sum" and config.tying == "untied" and config.size != config.hidden:
            raise Contradiction(
                f"`write=sum`: input and output vectors have {config.size} and {config.hidden} dimensions,"
                " which cannot be added"
            )

    def named(self, model):
        c = self.config
        return f"LSTM{BITS[c.precision]}, {TYING[c.tying]}, {c.layers} x {c.hidden}, embeddings of {c.size}"
