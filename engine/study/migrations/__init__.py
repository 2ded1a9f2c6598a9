"""Migrations of the study's tables (Alembic): one step a file, in the order of their numbers."""
