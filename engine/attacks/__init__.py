"""Adversarial examples for explanations: small changes of an input that change its map and leave its class."""
