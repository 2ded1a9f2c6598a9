"""Maps of several models and methods side by side: on parts that all of them share, and how far they agree."""
