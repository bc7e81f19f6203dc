"""Ranks that must go on alike, or end alike."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import distributed as dist

from kopeck_trainer.errors import TrainerError

Result = TypeVar("Result")
Group = dist.ProcessGroup | None


def on_rank_zero(action: Callable[[], Result], group: Group = None) -> Result:
    """What `action` returned on rank 0, on every rank. `group` is of all ranks.

    An OSError or TrainerError that it raised is raised on every rank too.
    """
    outcome: list[Any] = [_outcome(action) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(outcome, group=group)
    result, error = outcome[0]
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def gathered(value: Result, group: Group = None) -> list[Result]:
    """The `value` of every rank, by rank. `group` is of all ranks."""
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value, group=group)
    return values


def _outcome(action: Callable[[], Result]) -> tuple[Result | None, Exception | None]:
    try:
        return action(), None
    except (OSError, TrainerError) as error:
        return None, error
