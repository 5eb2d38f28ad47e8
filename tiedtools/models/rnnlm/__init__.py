"""Mikolov's RNN language model with Rei's document vector."""
