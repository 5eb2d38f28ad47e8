"""word2vec: sampling, the trainers, and the exchange between processes."""
