"""Fine-tuning of bases into classifiers: full or LoRA, resumable, with a card."""
