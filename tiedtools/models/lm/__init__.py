"""Recurrent language models: LSTM, GRU, and RHN."""
