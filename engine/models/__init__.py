"""Loading and running transformer classifiers of several families in one way."""
