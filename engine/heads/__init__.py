"""What attention heads look at and whether it matters: readings, scores, head scales, grids for a browser, flow."""
