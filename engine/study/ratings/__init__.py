"""From votes to ratings, and how far they can be trusted. Pure functions over plain arrays."""
