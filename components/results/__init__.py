"""The page of a study's results."""
