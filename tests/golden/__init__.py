"""Golden values: what every explainer gave on fixed checkpoints when its version was set."""
