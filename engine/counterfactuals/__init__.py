"""The fewest changes of an input that flip the prediction: the search, and its moves on texts and on pictures."""
