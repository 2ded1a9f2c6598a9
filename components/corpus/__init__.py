"""The Words page: words and patches that matter over a data set."""
