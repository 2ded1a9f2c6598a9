"""The Reproduction page: declared claims, the run that tries them, and what became of them."""
