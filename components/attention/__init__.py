"""The Attention page: heads, their board, what switching them does."""
