"""Losses that a user wants to hear of: not finite, or far above those before."""

from kopeck.api.status import TrainingStatus


def first_wrong_loss(before: TrainingStatus | None, after: TrainingStatus | None) -> str | None:
    """A sentence about the first of a kind that an attempt reports; None for later ones.

    Each attempt counts anew: its status has no counts until it reports.
    """
    before, after = before or TrainingStatus(), after or TrainingStatus()
    kinds = {
        "or its gradient is not finite": (before.nonfinite_losses, after.nonfinite_losses),
        "jumped": (before.loss_spikes, after.loss_spikes),
    }
    new = [kind for kind, (earlier, now) in kinds.items() if now and not earlier]
    if not new:
        return None
    return f"the loss {' and '.join(new)}, at step {after.step} or before; see the trainer's log"
