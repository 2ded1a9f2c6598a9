"""Tests of which words and patches matter more than chance, with control of the false discovery rate."""
