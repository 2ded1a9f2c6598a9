"""The Concepts page."""
