"""The shared frame of experiment pages: controls, links, runs and files follow from the experiment's declaration."""
