"""The Layers page: logit lens, patching, information flow routes."""
