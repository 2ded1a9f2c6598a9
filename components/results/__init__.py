"""The page of a study's results: the conclusion with its intervals, and what participants saw and answered."""
