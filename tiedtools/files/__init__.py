"""Files that are written whole or not at all: outputs, model files, manifests."""
