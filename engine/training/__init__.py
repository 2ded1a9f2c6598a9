"""Training: fine-tuning, training on images and pre-training, each resumable and with a card."""
