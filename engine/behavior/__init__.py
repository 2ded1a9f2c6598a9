"""Questions about a model's behavior: answers from direct queries of the model, compared with those of attributions."""
