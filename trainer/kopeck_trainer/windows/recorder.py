"""One window in torch's profiler: a step to warm up, then steps with a mark around each."""

from pathlib import Path

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function, schedule

MARK = "kopeck_window_mark"
"""The event before the first step that is measured, between two, and after the last."""


class Recorder:
    """Raises whatever torch's profiler raises; then the window is lost."""

    def __init__(self, device: torch.device) -> None:
        self._profile: profile | None = None
        self._marked = torch.zeros(1, device=device)
        if self._marked.is_cuda:
            self.mark()  # it is compiled now, and not in the midst of a window

    def warm_up(self) -> None:
        """The profiler is on from here, and what it sees is dropped."""
        steps = schedule(wait=0, warmup=1, active=2, repeat=1)
        if self._marked.is_cuda:
            # Only what runs on the GPU, and its launches: that holds up no host.
            self._profile = profile(activities=[ProfilerActivity.CUDA], schedule=steps)
        else:
            # Of all threads: gloo's collectives run in some of its own.
            threads = _ExperimentalConfig(profile_all_threads=True)
            self._profile = profile(
                activities=[ProfilerActivity.CPU], schedule=steps, experimental_config=threads
            )
        self._profile.start()

    def begin(self) -> None:
        """What is measured begins with the next work of the device."""
        assert self._profile is not None  # noqa: S101
        self._profile.step()
        self.mark()

    def end(self, trace: Path) -> None:
        """It ends with the last work that the device was given. Waits for it, and writes."""
        assert self._profile is not None  # noqa: S101
        self.mark()
        recorded, self._profile = self._profile, None
        recorded.stop()
        recorded.export_chrome_trace(str(trace))

    def abandon(self) -> None:
        """As if there had been no window."""
        recorded, self._profile = self._profile, None
        if recorded:
            recorded.stop()

    def mark(self) -> None:
        """One step is over and the next one begins."""
        if self._marked.is_cuda:
            from kopeck_trainer.window_mark_kernel import mark  # noqa: PLC0415  CPUs lack Triton

            mark(self._marked)
        else:
            with record_function(MARK):
                pass
