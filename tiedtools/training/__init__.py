"""Training loops, their checkpoints, and what they train on."""
