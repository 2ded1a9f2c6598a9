"""The Ask the model page: the accuracy of direct queries and attributions, one example, and the constructed models."""
