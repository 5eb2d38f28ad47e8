"""The training loop of language and translation models: schedules, batches, scoring, and lock-free threads."""
