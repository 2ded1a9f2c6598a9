"""The Suppressor page."""
