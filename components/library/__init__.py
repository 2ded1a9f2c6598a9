"""The Library page: jobs, models, data sets, previews, imported maps, the cache and the device."""
