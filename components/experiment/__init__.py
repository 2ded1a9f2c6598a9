"""The one frame of every experiment's page: controls, link, work, recent runs and files follow from its declaration."""
