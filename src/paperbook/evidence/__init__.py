"""Claims -> samples -> interval -> verdict -> record.

This package's own ``__init__`` stays empty of imports that need a card, since the card module
itself imports the rules; the ledger is loaded on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paperbook.evidence.ledger import Ledger

__all__ = ["Ledger"]


def __getattr__(name: str) -> Any:
    if name == "Ledger":
        from paperbook.evidence.ledger import Ledger

        return Ledger
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
