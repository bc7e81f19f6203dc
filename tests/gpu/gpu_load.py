"""`python -m tests.gpu.gpu_load MODE`: a GPU at work, and how busy a trace says it is.

MODE is `eager`, `compiled`, or `paused`: eager with a pause after each step that is as long as the
step. Last on standard output, as JSON: the share of time in which a kernel ran, and when work and
trace began and ended, on the machine's monotonic clock.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from tests.gpu.kernels import busy_us, kernels
from tests.gpu.llama import Llama

WARM_STEPS = 15
STEADY_SECONDS = 40.0
"""At work before the trace, so long that counters read every 10 s are read a few times."""

TRACED_SECONDS = 15.0
SIZES = {"vocabulary": 32000, "dim": 2048, "layers": 8, "heads": 16, "groups": 8, "hidden": 8192}
SEQUENCE = 2048
BATCH = 4


def main() -> int:
    mode = sys.argv[1]
    step = _step(is_compiled=mode == "compiled")
    for _ in range(WARM_STEPS):
        step()
    torch.cuda.synchronize()
    at_work = monotonic()
    _work(step, STEADY_SECONDS, is_paused=mode == "paused")
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        began = monotonic()
        _work(step, TRACED_SECONDS, is_paused=mode == "paused")
        ended = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(trace))
        busy = busy_us(kernels(trace)) / 1e6 / (ended - began)
    told = {"busy_ratio": busy, "at_work": at_work, "began": began, "ended": ended}
    print(json.dumps(told), flush=True)
    return 0


def _work(step: Callable[[], None], seconds: float, *, is_paused: bool) -> None:
    until = monotonic() + seconds
    while monotonic() < until:
        started = monotonic()
        step()
        torch.cuda.synchronize()
        if is_paused:
            sleep(monotonic() - started)


def _step(*, is_compiled: bool) -> Callable[[], None]:
    """One step of a training in bf16."""
    torch.manual_seed(0)
    model = Llama(**SIZES, sequence=SEQUENCE).to("cuda", torch.bfloat16)
    if is_compiled:
        for layer in model.layers:
            layer.compile(fullgraph=True, dynamic=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(SIZES["vocabulary"], (BATCH, SEQUENCE + 1), device="cuda")

    def step() -> None:
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == "__main__":
    sys.exit(main())
