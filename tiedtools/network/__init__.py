"""Building blocks of neural networks: parameters, scratch buffers, thread teams, layers, optimizers."""
