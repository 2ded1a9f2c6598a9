"""Side-by-side measurements: each module measures in one run and gives ratios; none is a test."""
