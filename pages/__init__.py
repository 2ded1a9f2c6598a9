"""One thin file per page. It reads the controls, builds a request, and calls the engine and the components."""
