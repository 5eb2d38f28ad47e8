"""Feed-forward and output layers, and optimizer steps."""
