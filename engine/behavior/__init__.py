"""Questions about a model's behavior, answered by asking the model, and what each attribution would have answered."""
