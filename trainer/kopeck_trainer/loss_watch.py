"""Steps that a user wants to hear of: loss or gradients not finite, or a loss far above others."""

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import fmean, pstdev

RECENT_LOSSES = 50
FEWEST_LOSSES = 10
"""Before so many there is nothing to compare with: the first losses fall fast."""

SPIKE_DEVIATIONS = 6.0
"""Above the mean of the recent ones. A batch that is merely hard stays well below."""
SMALLEST_SPIKE = 0.1
"""Of the mean: where all losses are alike, their deviation says nothing."""


@dataclass
class LossWatch:
    """Counts them, and says so in a sentence."""

    nonfinite: int = 0
    spikes: int = 0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_LOSSES))

    def seen(self, loss: float, *, is_skipped: bool = False) -> str | None:
        """What is wrong with the loss of a step, None if nothing is.

        It `is_skipped` where the gradients were not finite, whose norm is clipped.
        """
        if not math.isfinite(loss):
            self.nonfinite += 1
            return f"the loss is {loss}"
        if is_skipped:
            self.nonfinite += 1
            return "the norm of the gradients is not finite, so nothing was updated"
        is_spike = self._is_spike(loss)
        self.recent.append(loss)  # so that a level that stays is no spike for long
        if not is_spike:
            return None
        self.spikes += 1
        return f"the loss has jumped to {loss:.4f}"

    def _is_spike(self, loss: float) -> bool:
        if len(self.recent) < FEWEST_LOSSES:
            return False
        mean = fmean(self.recent)
        usual = max(SPIKE_DEVIATIONS * pstdev(self.recent), SMALLEST_SPIKE * abs(mean))
        return loss > mean + usual
