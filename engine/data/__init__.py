"""Data sets: the embedded reviews, SST-2, files of your own, the hub. Nothing here imports torch."""
