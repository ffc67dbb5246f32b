"""Errors that are the user's to mend: the command line shows them as one line."""


class PaperbookError(ValueError):
    """Bad input: the message says what was wrong and what is allowed."""


class CardError(PaperbookError):
    """A chapter card that cannot be used: the message names file, field and reason."""


class RunError(RuntimeError):
    """A notebook run that did not finish: the message names the cell and its error.

    ``again`` tells whether another try may end differently.
    """

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again
