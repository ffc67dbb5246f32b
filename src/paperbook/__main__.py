"""``python -m paperbook``: the command line."""

from paperbook.cli import app

if __name__ == "__main__":
    app()
