"""The Evaluate page: how far each explanation method can be trusted on each model, as interactive tables and charts."""
