"""Maps of texts: each token or word on the color of its score, as HTML, as SVG, and with pins that clicks set."""

from components.widgets.token_map.html import TokenMap, legend_html, token_map_html

__all__ = ["TokenMap", "legend_html", "token_map_html"]
