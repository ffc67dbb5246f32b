"""paperbook: executable, judged reproductions of NeurIPS 2026 papers."""
