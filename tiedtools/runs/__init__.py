"""What surrounds a training loop: output files, checkpoints, signals, and progress."""
