"""The Scaffold page: how well explanations teach, and what a learned explainer looks at."""
