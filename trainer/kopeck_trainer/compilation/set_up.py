"""Compilation for one training, put together."""

from functools import partial

from kopeck_trainer.batches import Batches
from kopeck_trainer.compilation.blocks import Blocks, allow_graphs
from kopeck_trainer.compilation.causes import Causes
from kopeck_trainer.compilation.fallbacks import Fallbacks
from kopeck_trainer.compilation.loss import Loss
from kopeck_trainer.compilation.numerics import Ladder
from kopeck_trainer.compilation.probing import Prober
from kopeck_trainer.compilation.record import decision_key
from kopeck_trainer.compilation.search import ModeSearch
from kopeck_trainer.compilation.session import Compilation
from kopeck_trainer.compile_watch import CompileWatch
from kopeck_trainer.config import TrainConfig, TrainingConfig
from kopeck_trainer.optimizer_step import OptimizerStep
from kopeck_trainer.parallelize import find_blocks
from kopeck_trainer.progress import Progress
from kopeck_trainer.reporter import Reporter

MODES_TRIED = 4


def set_up_compilation(  # noqa: PLR0913  one of each thing that it connects
    config: TrainConfig,
    training: TrainingConfig,
    step: OptimizerStep,
    batches: Batches,
    consumed: int,
    reporter: Reporter,
    progress: Progress,
) -> Compilation:
    """Reads the micro-batch after `consumed` samples, which is then the first to be trained on."""
    compile_config, lengths = training.compile, training.data.pad_to
    blocks = Blocks(
        modules=find_blocks(step.task, step.model),
        loss=step.task.loss if isinstance(step.task.loss, Loss) else None,
        fails_on_graph_break=compile_config.fails_on_graph_break,
    )
    allow_graphs(MODES_TRIED, max(1, len(lengths)))
    batch = batches.first_of_length(consumed, None)
    prober = Prober(step=step)
    ladder = Ladder(blocks=blocks, probe=partial(prober.probe, batch), device=step.device)
    search = ModeSearch(
        folder=compile_config.cache,
        key=decision_key(config, training, step, batch),
        device=step.device,
        say=progress.say,
    )
    watch = CompileWatch(reporter.clock)
    return Compilation(
        config=compile_config,
        blocks=blocks,
        ladder=ladder if compile_config.numerics_check else None,
        search=search,
        warm_up=partial(_see_all_lengths, prober, batches, consumed, lengths),
        watch=watch,
        fallbacks=Fallbacks(say=progress.say),
        causes=Causes(watch, progress.say),
        reporter=reporter,
        progress=progress,
        device=step.device,
    )


def _see_all_lengths(
    prober: Prober, batches: Batches, consumed: int, lengths: tuple[int, ...]
) -> None:
    for length in lengths:
        prober.probe(batches.first_of_length(consumed, length))
