"""Helpers that write and modify model files and checkpoints."""

from tiedtools.files import modelfile


def save(model, path):
    with open(path, "wb") as file:
        model.save(file)


def rewrite(path, change):
    """Apply change(header, words, arrays) to a model file or checkpoint."""
    header, words, arrays = modelfile.load(path)
    change(header, words, arrays)
    with open(path, "wb") as file:
        modelfile.save(file, header["kind"], header["config"], words, arrays)


# Ways to corrupt the model file of any language model: functions that modify header, words and arrays.
MODEL_DAMAGES = {
    "counts missing": lambda header, words, arrays: arrays.pop("counts"),
    "array cut": lambda header, words, arrays: arrays.update({"emb_in": arrays["emb_in"][:-1]}),
    "one vector for all": lambda header, words, arrays: arrays.update({"emb_in": arrays["emb_in"][:1]}),
    "word missing": lambda header, words, arrays: words.pop(),
    "unknown option": lambda header, words, arrays: header["config"].update(dropconnect=0.5),
}
