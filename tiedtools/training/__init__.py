"""Training loops, schedules, checkpoints, and batches."""
