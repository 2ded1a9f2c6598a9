"""The Adversarial page: a map that changes although the model answers as before, on one example and on many."""
