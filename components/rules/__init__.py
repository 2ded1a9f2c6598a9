"""What the page of rules draws."""
