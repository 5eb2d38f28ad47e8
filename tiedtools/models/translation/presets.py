"""Presets of `tiedtools nmt`. Imports nothing heavy. Like those of `tiedtools lm`, they do not set tying."""

PRESETS = {
    # DL4MT's session 2 as Press & Wolf 2017 used it, section 5: 300,000 updates, which is .8 epochs of the 12 million
    # pairs of WMT 2014 English-French; the batch size is DL4MT's. Add --bpe 89500.
    "press-wolf-nmt": (
        "Press & Wolf 2017, table 8, WMT 2014: the model of DL4MT; add --tie decoder or all",
        dict(
            size=500, hidden=1000, init=0.01, optimizer="adadelta", lr=1.0, schedule="constant", clip=1.0, batch=32,
            max_length=49, epochs=1,
        ),
    ),
    # Sizes, dropout, and batch are those of nmtpytorch's configuration for Multi30k; the rest: ours.
    "multi30k": (
        "small texts such as Multi30k, as in nmtpytorch; add --tie decoder or all, and --bpe 10000",
        dict(
            size=128, hidden=256, drop_emb=0.3, drop_annotation=0.5, drop_out=0.5, l2=1e-5, optimizer="adam", lr=1e-3,
            schedule="plateau", decay=2.0, clip=1.0, batch=32, epochs=40,
        ),
    ),
}  # fmt: skip
