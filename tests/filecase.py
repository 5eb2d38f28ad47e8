"""Model files and checkpoints, written and changed."""

from tiedtools import modelfile


def save(model, path):
    with open(path, "wb") as file:
        model.save(file)


def rewrite(path, change):
    """Have change(header, words, arrays) done to a model file or checkpoint."""
    header, words, arrays = modelfile.load(path)
    change(header, words, arrays)
    with open(path, "wb") as file:
        modelfile.save(file, header["kind"], header["config"], words, arrays)
