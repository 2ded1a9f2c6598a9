"""Training of vision transformers, from new weights or from a checkpoint: resumable, with a card."""
