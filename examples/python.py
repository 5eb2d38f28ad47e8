"""Train word vectors and a language model from Python: python examples/python.py [SENTENCES]

The text is taken from the documentation of Python's standard library, so nothing is downloaded. The first run compiles
the code for this CPU and is slower.
"""

import sys
from itertools import islice

from corpus import build

import tiedtools


def show_epoch(figures):
    """Print a line per epoch; returning False would stop training."""
    print(f"epoch {figures['epoch']}: validation perplexity {figures['valid_ppl']:.1f}")


def main(limit=10_000):
    # A text is an iterable of sentences, each a list of words. Paths, open files, and generators also work.
    text = [list(sentence) for sentence in islice(build(["stdlib"]), limit)]
    train, test = text[: -len(text) // 10], text[-len(text) // 10 :]

    # Word vectors: CBOW with tied input and output vectors, and a quarter of the dimensions negated in the input.
    # Untied vectors (tying="untied") have two matrices, tied ones (tying="tied") have one and no signs.
    model = tiedtools.Word2Vec(size=100, tying="signs", epochs=20).fit(train)

    # Words that occur in similar contexts have similar vectors: the cosine is near 1. `in` tests for a known word.
    for word in "file", "error", "string":
        if word in model.vectors:
            near = model.vectors.most_similar(word, topn=4)
            print(f"{word}:", ", ".join(f"{other} {cosine:.2f}" for other, cosine in near))

    # A language model: an LSTM that reads words and predicts the next one. It is tied, too: only one parameter matrix
    # grows with the vocabulary. The last tenth of the training text is held out to choose the best epoch.
    lm = tiedtools.LanguageModel("lstm", size=100, layers=1, tying="tied", max_vocab=3000, epochs=3)
    lm.fit(train, on_epoch=show_epoch)

    # Perplexity is the exponential of the mean loss per word: lower is better. Evaluate a model on held-out text.
    print(f"test perplexity {lm.perplexity(test):.1f}")
    print("the name of the ->", ", ".join(f"{word} {p:.2f}" for word, p in lm.next_words("the name of the", top=4)))

    # A temperature below 1 favors probable words.
    for sentence in lm.generate(3, temperature=0.7, no_unk=True):
        print(" ".join(sentence))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
