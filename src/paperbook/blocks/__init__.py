"""Building blocks that two chapters or more share."""
