"""The flow of attention: a graph from the input to the prediction."""
