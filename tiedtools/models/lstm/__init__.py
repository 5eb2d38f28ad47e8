"""The LSTM language model."""
