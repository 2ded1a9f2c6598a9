"""The Library page: jobs, models, data sets, the cache, the device."""
