"""The attention board: a score and a map for every head, and one head in detail, drawn by the browser alone."""
