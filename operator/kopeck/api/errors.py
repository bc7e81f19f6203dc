"""What goes wrong by somebody's hand, each with a sentence that says what to write instead.

KopeckError
├── SpecError       a TrainingJob asks for what cannot be
├── ConfigError     a file or setting of kopeck itself is wrong
└── LedgerError     what is stored as a job's ledger is none
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Processes that read traces start a fifth faster without pydantic.
    from pydantic import ValidationError


class KopeckError(Exception):
    """Any error that its user can mend; shown without a traceback."""


class SpecError(KopeckError):
    """A field of a TrainingJob is wrong: `field: wrong; instead`."""

    def __init__(self, field: str, wrong: str, instead: str) -> None:
        super().__init__(f"{field}: {wrong}; {instead}")
        self.field = field


class ConfigError(KopeckError):
    """A file or setting of kopeck is wrong: `where: wrong; instead`."""

    def __init__(self, where: str, wrong: str, instead: str) -> None:
        super().__init__(f"{where}: {wrong}; {instead}")
        self.where, self.wrong = where, wrong
        self._instead = instead

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[str, str, str]]:
        """As another process needs it, to raise the same."""
        return ConfigError, (self.where, self.wrong, self._instead)


class LedgerError(KopeckError):
    """A job's ledger cannot be read: `where: wrong; instead`. What it says is unknown, not zero."""

    def __init__(self, where: str, wrong: str, instead: str) -> None:
        super().__init__(f"{where}: {wrong}; {instead}")


def first_wrong_field(error: "ValidationError") -> tuple[str, str]:
    """The dotted path of the first wrong field, and what is wrong with it as part of a sentence."""
    first = error.errors()[0]
    said = first["msg"]
    return ".".join(str(part) for part in first["loc"]), said[:1].lower() + said[1:]
