"""The flow graph: attention from the input to the prediction as a layered graph, drawn by the browser or as a file."""
