"""TODO one line: what the paper adds.

Source: TODO authors, title, arXiv number.
"""

from paperbook.@SLUG@.method import mean_error, sample_mean

__all__ = ["mean_error", "sample_mean"]
