"""Models, data, explainers, metrics and experiments. The engine never imports the user interface."""
