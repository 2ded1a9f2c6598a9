"""The Library page: long work and what it draws on - jobs, models, data sets, the cache, the device."""
