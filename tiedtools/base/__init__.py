"""Plain Python that every folder imports; nothing here imports NumPy."""
