"""The Reproduction page: declared claims, the runs that test them, and the verdicts."""
