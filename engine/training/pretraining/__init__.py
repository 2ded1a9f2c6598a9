"""New text models: own tokenizers, then each family's own pre-training."""
