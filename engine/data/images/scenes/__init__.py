"""Scenes drawn by code: ten things over photographic and procedural grounds, with exact masks."""
