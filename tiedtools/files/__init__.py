"""Atomically written files: outputs, model files, and run manifests."""
