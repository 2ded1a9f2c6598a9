"""Models, data, explainers, metrics and experiments. No UI below this line of the house."""
