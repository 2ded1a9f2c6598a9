"""Alembic migrations of the study tables: one step per file, in the order of their numbers."""
