"""The claims of the thesis, declared before the run, and whether they hold on models that are here."""
