"""paperbook: executable, judged reproductions of NeurIPS 2026 papers."""

from importlib.metadata import version

__version__ = version("paperbook")
