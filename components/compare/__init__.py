"""The Compare page: models and methods side by side on one example, how far they agree, and where they disagree."""
