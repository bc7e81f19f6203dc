"""What of a trace could not be read, in numbers and in sentences."""

from collections import Counter
from dataclasses import dataclass, field

READ_NOT = "cannot be read"
ARGS_NOT_READ = "have arguments that cannot be read"
NO_TIME = "have no time, or begin at 0"
NO_DURATION = "have no duration"


@dataclass
class Losses:
    """What was not as it should be, in numbers of events."""

    mended: int = 0
    """Pieces of text in which characters were mended."""
    counts: Counter[str] = field(default_factory=Counter)
    """Events left out, by reason."""
    is_cut_short: bool = False
    """Whether the text ends before the list of events does."""

    def add(self, other: "Losses") -> None:
        self.mended += other.mended
        self.counts.update(other.counts)
        self.is_cut_short |= other.is_cut_short

    def sentences(self) -> tuple[str, ...]:
        """Each kind of loss as a sentence without its subject."""
        said = [
            f"{count} events {reason}" for reason, count in sorted(self.counts.items()) if count
        ]
        if self.mended:
            said.append("characters that JSON forbids were mended")
        if self.is_cut_short:
            said.append("the file is cut short, events after its end are lost")
        return tuple(said)
