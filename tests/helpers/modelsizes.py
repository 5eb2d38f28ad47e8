"""Numbers of parameters and operations of models, by the formulas of the papers."""


def lstm_params(config, V):
    """Return the number of parameters of an LSTM model with V words, counting tied ones once.

    Each layer has one bias vector of 4n. Gulordava et al. count PyTorch's two, 4n more per layer.
    """
    m, n, units = config.size, config.hidden, config.units
    lstm = sum(4 * n * (width + n + 1) for width, n in zip([m, *units], units))
    between = n * n + n if config.projection else n * m + m * config.linear_bias if config.tying == "linear" else 0
    output = V * n * (config.tying == "untied") + V * config.output_bias
    return V * m + lstm + between + output


def rnnlm_params(config, V):
    """Return the number of parameters as in Rei 2015: with C classes, without initial state and n-gram features."""
    M, C, D = config.hidden, config.classes, config.doc_dim
    return C * M + 2 * V * M + M * M + (D + D * V + D * C if D else 0)


def rnnlm_operations(config, expected):
    """Return the multiply-adds to predict a word, with E[O] = `expected`, and update the document vector (Rei 2015)."""
    M, C, D = config.hidden, config.classes, config.doc_dim
    return M * M + M * C + M * expected + 2 * D * expected + 2 * D * C
