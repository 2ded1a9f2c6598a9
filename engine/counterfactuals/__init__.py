"""Counterfactuals: search for the fewest changes of a text or picture that flip the prediction."""
