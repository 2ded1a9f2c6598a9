"""Which words and patches matter more than chance, with the false discovery rate controlled."""
