"""Models and methods side by side on one example, how far they agree, and where they do not: the Compare page."""
