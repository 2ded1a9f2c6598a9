"""Image classifiers: preprocessing of pictures, and vision transformers that read their patches."""
