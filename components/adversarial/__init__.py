"""The Adversarial page: attacks on maps, on one example and on many."""
