"""The class-based RNN language model."""
