"""Pictures with labels and, where it is known, the place of what the label names."""
