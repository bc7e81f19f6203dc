"""What a rank may wish for, so that all ranks do it after the same step."""

from dataclasses import dataclass

from kopeck_trainer.save_wish import SaveWish
from kopeck_trainer.stop_request import StopRequest
from kopeck_trainer.windows.wish import WindowWish


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """Read once in each step."""

    stop: StopRequest
    save: SaveWish
    window: WindowWish
