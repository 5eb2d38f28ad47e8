"""The Python interface, whose public names `import tiedtools` offers."""
