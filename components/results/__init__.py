"""The page of a study's results: the answer, the intervals it rests on, and what people saw and said."""
