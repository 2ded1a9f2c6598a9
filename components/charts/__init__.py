"""Statistical charts that several pages draw, and their files.

`frame`: titles, colors, legends, axes and clicks. `scores`: means with intervals, as lines, bars and points.
`comparisons`: removal curves of one example, intervals and agreement. `files`: a chart as SVG, HTML, PNG, Vega-Lite and
CSV.
"""
