"""Writing checkpoints beside the training, from a copy that is taken between two steps."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch.distributed.checkpoint._state_dict_stager import StateDictStager

from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.checkpoint.saving import Saver


class BackgroundSaver:
    """Saves one checkpoint at a time in a thread, over a group that nothing else uses.

    The copy is taken beside the next forward and backward, on GPUs into pinned memory on a stream
    of its own; the next update of the weights is to wait for it.
    """

    def __init__(self, saver: Saver) -> None:
        self._saver = saver
        on_gpu = torch.cuda.is_available()
        self._stream = torch.cuda.Stream() if on_gpu else None  # type: ignore[no-untyped-call]
        # Not the public DefaultStager: that of torch 2.11 can be used once only.
        self._stager = StateDictStager(pin_memory=on_gpu)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kopeck-checkpoint")
        self._copied: Future[None] | None = None
        self._saved: Future[None] | None = None

    def start(
        self, content: dict[str, Any], position: Position, on_saved: Callable[[], None]
    ) -> None:
        """Copy `content` and save the copy; `on_saved`, in the thread, follows its commit.

        Raises what the save before raised.
        """
        self.finish()
        if self._stream:
            self._stream.wait_stream(torch.cuda.current_stream())  # for what `content` is made of
        self._copied = Future()
        self._saved = self._thread.submit(self._save, content, self._copied, position, on_saved)

    @property
    def is_writing(self) -> bool:
        return self._saved is not None and not self._saved.done()

    def raise_if_failed(self) -> None:
        """What a save that is over raised: see `Saver.save`."""
        if self._saved and self._saved.done():
            self.finish()

    def finish(self) -> None:
        """Wait for the save under way. Raises what it raised: see `Saver.save`."""
        saved, self._saved = self._saved, None
        if saved:
            saved.result()

    def await_copy(self) -> None:
        """Before weights or optimizer change."""
        copied, self._copied = self._copied, None
        if copied:
            copied.result()

    def _save(
        self,
        content: dict[str, Any],
        copied: Future[None],
        position: Position,
        on_saved: Callable[[], None],
    ) -> None:
        try:
            copy = self._copy(content)
        except BaseException as error:
            copied.set_exception(error)
            raise
        copied.set_result(None)
        self._saver.save(copy, position)
        on_saved()

    def _copy(self, content: dict[str, Any]) -> dict[str, Any]:
        with torch.cuda.stream(self._stream):  # of None it does nothing
            copy: dict[str, Any] = self._stager.stage(content, non_blocking=True)
        if self._stream:
            self._stream.synchronize()
        return copy
