"""Writing checkpoints beside the training, from a copy that is taken between two steps."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.checkpoint.saving import Saver


class BackgroundSaver:
    """Saves one checkpoint at a time in a thread, over a group that nothing else uses.

    On GPUs the copy goes to pinned memory on a stream of its own, beside the next forward and
    backward; the next update of the weights is to wait for it.
    """

    def __init__(self, saver: Saver) -> None:
        self._saver = saver
        on_gpu = torch.cuda.is_available()
        self._stager = DefaultStager(
            StagingOptions(
                use_pinned_memory=on_gpu,
                use_shared_memory=False,
                use_async_staging=on_gpu,
                use_non_blocking_copy=on_gpu,
            )
        )
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kopeck-checkpoint")
        self._copy: Future[dict[str, Any]] | None = None
        self._saved: Future[None] | None = None

    def start(
        self, content: dict[str, Any], position: Position, on_saved: Callable[[], None]
    ) -> None:
        """Copy `content` and save the copy; `on_saved`, in the thread, follows its commit.

        Raises what the save before raised.
        """
        self.finish()
        self._copy = _as_future(self._stager.stage(content))
        self._saved = self._thread.submit(self._save, self._copy, position, on_saved)

    def raise_if_failed(self) -> None:
        """What a save that is over raised: see `Saver.save`."""
        if self._saved and self._saved.done():
            self.finish()

    def finish(self) -> None:
        """Wait for the save under way. Raises what it raised: see `Saver.save`."""
        saved, self._saved = self._saved, None
        if saved:
            saved.result()

    def _save(
        self, copy: Future[dict[str, Any]], position: Position, on_saved: Callable[[], None]
    ) -> None:
        self._saver.save(copy.result(), position)
        on_saved()

    def await_copy(self) -> None:
        """Before weights or optimizer change."""
        copy, self._copy = self._copy, None
        if copy:
            copy.result()


def _as_future(staged: dict[str, Any] | Future[dict[str, Any]]) -> Future[dict[str, Any]]:
    if isinstance(staged, Future):
        return staged
    done: Future[dict[str, Any]] = Future()
    done.set_result(staged)
    return done
