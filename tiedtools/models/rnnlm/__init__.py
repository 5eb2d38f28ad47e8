"""Mikolov's class-based RNN language model with Rei's document vector."""
