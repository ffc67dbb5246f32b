"""Data that ships with the package, and generators that several chapters use."""
