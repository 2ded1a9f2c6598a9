"""Attention heads: readings, scores, scales, matrices for a browser, and the flow through all layers."""
