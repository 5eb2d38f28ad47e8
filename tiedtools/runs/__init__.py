"""What surrounds a training loop: files, records, checkpoints, and progress."""
