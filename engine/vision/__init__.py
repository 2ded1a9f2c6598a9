"""Image classifiers: what a picture becomes before it is read, and vision transformers that read its patches."""
