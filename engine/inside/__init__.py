"""Inside a model: logit lens, activation patching, attribution patching, information flow routes."""
