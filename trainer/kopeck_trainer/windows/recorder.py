"""One window in torch's profiler: a step to warm up, then steps with a mark around each."""

from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

MARK = "kopeck_window_mark"
"""The event before the first step that is measured, between two, and after the last."""


class Recorder:
    """Raises whatever torch's profiler raises; then the window is lost."""

    def __init__(self, device: torch.device) -> None:
        self._is_on_gpu = device.type == "cuda"
        self._profile: profile | None = None
        if self._is_on_gpu:
            _mark_gpu()  # it is compiled now, and not in the midst of a window

    def warm_up(self) -> None:
        """The profiler is on from here, and what it sees is dropped."""
        # Of a GPU only what runs on it, and its launches: that holds up no host.
        activity = ProfilerActivity.CUDA if self._is_on_gpu else ProfilerActivity.CPU
        all_threads = torch._C._profiler._ExperimentalConfig(  # noqa: SLF001  2.11 to 2.15
            profile_all_threads=not self._is_on_gpu  # gloo's, where its collectives run
        )
        self._profile = profile(
            activities=[activity],
            schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
            experimental_config=all_threads,
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
        if self._is_on_gpu:
            _mark_gpu()
        else:
            with record_function(MARK):
                pass


def _mark_gpu() -> None:
    from kopeck_trainer.window_mark_kernel import mark  # noqa: PLC0415  CPUs have no Triton

    mark()
