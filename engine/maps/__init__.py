"""Maps of other tools, imported from a file: each set is a method for its own inputs, which computes nothing."""
