"""The shared frame of experiment pages. It derives controls, links, runs and files from an experiment's declaration."""
