"""One thin file a page: read the controls, build a request, call the engine, call the components."""
