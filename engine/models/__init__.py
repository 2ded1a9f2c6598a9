"""Models: the catalog, loading, and classifiers of several families behind one interface."""
