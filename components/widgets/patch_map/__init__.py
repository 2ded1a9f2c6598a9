"""Maps of pictures: a score for each patch over the picture, as HTML cards, as PNG, and with pins that clicks set."""

from components.widgets.patch_map.html import PatchMap, layers_html, legend_html

__all__ = ["PatchMap", "layers_html", "legend_html"]
