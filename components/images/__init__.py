"""The Images page: one picture, its prediction, and the patches that many methods explain it by."""
