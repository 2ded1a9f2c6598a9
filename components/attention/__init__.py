"""The Attention page: all attention heads on a board, and the effect of switching heads off."""
