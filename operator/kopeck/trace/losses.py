"""What of a trace could not be read, in numbers and in sentences."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum


class Loss(Enum):
    """What is wrong with events, as is said of one and of several."""

    NOT_READ = "cannot be read", "cannot be read"
    ARGS = "has arguments that cannot be read", "have arguments that cannot be read"
    NO_TIME = "has no time, or begins at 0", "have no time, or begin at 0"
    TIME = "begins before 0 or after the year 2100", "begin before 0 or after the year 2100"
    NO_DURATION = "has no duration", "have no duration"
    DURATION = "lasts less than 0 or more than a day", "last less than 0 or more than a day"

    def sentence(self, count: int) -> str:
        one, several = self.value
        return f"1 event {one}" if count == 1 else f"{count} events {several}"


@dataclass
class Losses:
    """What was not as it should be, in numbers of events."""

    mended: int = 0
    """Pieces of text in which characters were mended."""
    counts: Counter[Loss] = field(default_factory=Counter)
    """Events that are left out, or without their arguments."""
    is_cut_short: bool = False
    """Whether the text ends before the list of events does."""

    def add(self, other: "Losses") -> None:
        self.mended += other.mended
        self.counts.update(other.counts)
        self.is_cut_short |= other.is_cut_short

    def sentences(self) -> tuple[str, ...]:
        """Each kind of loss as a sentence without its subject."""
        said = [loss.sentence(self.counts[loss]) for loss in Loss if self.counts[loss]]
        if self.mended:
            said.append("characters that JSON forbids were mended")
        if self.is_cut_short:
            said.append("the file is cut short, events after its end are lost")
        return tuple(said)
