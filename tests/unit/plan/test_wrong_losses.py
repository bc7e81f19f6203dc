"""A diverging training is told of once, not at every refresh."""

from kopeck.api.status import TrainingStatus
from kopeck.plan.wrong_losses import first_wrong_loss


def counted(nonfinite: int | None, spikes: int | None) -> TrainingStatus:
    return TrainingStatus(step=9, nonfinite_losses=nonfinite, loss_spikes=spikes)


def test_the_first_of_each_kind_is_told() -> None:
    assert first_wrong_loss(counted(0, 0), counted(2, 0)) == (
        "the loss or its gradient is not finite, at step 9 or before; see the trainer's log"
    )
    assert first_wrong_loss(counted(2, 0), counted(3, 1)) == (
        "the loss jumped, at step 9 or before; see the trainer's log"
    )


def test_later_ones_are_not() -> None:
    assert first_wrong_loss(counted(1, 1), counted(50, 7)) is None


def test_an_attempt_that_begins_diverged_is_told_of_too() -> None:
    said = first_wrong_loss(None, counted(1, 1))
    assert said
    assert said.startswith("the loss or its gradient is not finite and jumped, ")


def test_nothing_is_told_of_what_is_unknown() -> None:
    assert first_wrong_loss(None, None) is None
    assert first_wrong_loss(counted(3, 0), counted(None, None)) is None
    assert first_wrong_loss(counted(None, None), counted(0, 0)) is None
