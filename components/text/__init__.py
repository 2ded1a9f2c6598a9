"""The Text page: one text, its prediction, and the tokens that many methods explain it by."""
