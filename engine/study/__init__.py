"""The blind study: people rank explanations that have no names, and the ratings of methods that follow."""
