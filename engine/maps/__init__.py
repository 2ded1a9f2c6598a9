"""Maps of other tools, imported from files. Each set is a method for its own inputs, which looks maps up."""
