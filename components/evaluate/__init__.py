"""The Evaluate page: which explanation method deserves trust on which model, as tables and charts to be questioned."""
