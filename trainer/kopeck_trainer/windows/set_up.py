"""The windows of a rank, as its training and its place allow them."""

from pathlib import Path

import torch
from torch._C._distributed_c10d import TCPStore

from kopeck_trainer.checkpointing import Checkpoints
from kopeck_trainer.compilation.session import Compilation
from kopeck_trainer.config import ProfileConfig
from kopeck_trainer.environment import RankEnvironment
from kopeck_trainer.progress import Progress
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.windows.analysis import Analysis
from kopeck_trainer.windows.faults import WindowFaults
from kopeck_trainer.windows.recorder import Recorder
from kopeck_trainer.windows.recording import Windows
from kopeck_trainer.windows.wish import WindowWish

GRAPH_MODES = frozenset({"reduce-overhead", "max-autotune"})
"""They replay CUDA graphs, and with these CUPTI crashes when it is loaded a second time."""


def set_up_windows(  # noqa: PLR0913  one of each thing that it connects
    config: ProfileConfig,
    rank: RankEnvironment,
    store: TCPStore,
    device: torch.device,
    compilation: Compilation,
    checkpoints: Checkpoints,
    reporter: Reporter,
    progress: Progress,
) -> Windows:
    """Rank 0 wishes for all. One rank alone communicates with nobody, and has no windows."""
    is_on_gpu = device.type == "cuda"
    has_windows = rank.rank == 0 and rank.world_size > 1 and rank.run_directory is not None

    faults = WindowFaults(rank.rank, reporter)
    address = (store.host, store.port)
    analysis = Analysis(rank, address, config.steps, config.keep, reporter, faults)

    def is_held() -> bool:
        has_graphs = is_on_gpu and compilation.mode in GRAPH_MODES
        return has_graphs or checkpoints.is_being_written or analysis.is_under_way

    return Windows(
        steps=config.steps,
        wish=WindowWish(
            config.every_seconds if has_windows else None, is_on_gpu=is_on_gpu, is_held=is_held
        ),
        recorder_of=lambda: Recorder(device),
        analysis=analysis,
        faults=faults,
        folder=rank.run_directory or Path(),
        local_rank=rank.local_rank,
        compilations=lambda: compilation.watch.compilations,
        reporter=reporter,
        progress=progress,
    )
