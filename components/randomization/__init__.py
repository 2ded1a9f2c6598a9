"""The Randomization page: a model made random block by block, and whether its explanations notice."""
