"""Python's garbage collection, at moments of our choice."""

import gc

STEPS_BETWEEN = 100
"""Young garbage is collected this often; tensors die by reference count and do not wait for it."""


class Garbage:
    """Collected between steps and not in the midst of them, where it holds up the device.

    What lives after the first of them, modules and graphs by the million, is not looked at again.
    """

    def __init__(self) -> None:
        self._steps = 0

    def step_ended(self) -> None:
        if self._steps == 0:
            gc.collect()
            gc.freeze()
            gc.disable()
        elif self._steps % STEPS_BETWEEN == 0:
            gc.collect(1)
        self._steps += 1
