"""One rank's training, from joining its peers to leaving them."""

import enum
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import distributed as dist
from torch import nn
from torch._C._distributed_c10d import Store, TCPStore
from torch.optim import Optimizer

from kopeck_trainer.batches import Batches
from kopeck_trainer.builder import build_task
from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.checkpoint.state import TrainedState
from kopeck_trainer.checkpointing import Checkpoints
from kopeck_trainer.compilation.loss import with_compilable_loss
from kopeck_trainer.compilation.set_up import set_up_compilation
from kopeck_trainer.config import TrainConfig, TrainingConfig
from kopeck_trainer.data_workers import DataWorkers
from kopeck_trainer.environment import RankEnvironment
from kopeck_trainer.errors import NonfiniteLossError, RendezvousError
from kopeck_trainer.flops import flops_per_sample
from kopeck_trainer.hang_watch import TIMEOUTS_PER_DEADLINE, HangWatch
from kopeck_trainer.loop import Loop
from kopeck_trainer.meeting import meet
from kopeck_trainer.optimizer_step import OptimizerStep
from kopeck_trainer.padding import Padding, resized
from kopeck_trainer.parallelize import compute_dtype, parallelize
from kopeck_trainer.peak_flops import peak_flops
from kopeck_trainer.progress import Progress
from kopeck_trainer.reading import Reader, Source
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.schedule import accumulation_steps, samples_to_train, used_samples
from kopeck_trainer.seeds import derived_seed
from kopeck_trainer.sharding import Sharding
from kopeck_trainer.step_split import StepSplit
from kopeck_trainer.stop_request import StopRequest
from kopeck_trainer.task import TrainingTask
from kopeck_trainer.timeline import timeline_of
from kopeck_trainer.timeouts import set_timeouts
from kopeck_trainer.update import prepare_optimizer, update_by
from kopeck_trainer.windows.set_up import set_up_windows
from kopeck_trainer.wishes import Wishes
from kopeck_trainer.working_weights import working_weights

JOIN_SECONDS = 300.0
"""For ranks that have met to connect to each other: one that dies meanwhile is not waited for as
long as one that may still come."""


class Outcome(enum.Enum):
    COMPLETED = enum.auto()
    STOPPED_SAVED = enum.auto()
    STOPPED_UNSAVED = enum.auto()
    """The training has no checkpoints."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all parts of a rank's training have in common."""

    config: TrainConfig
    training: TrainingConfig
    rank: RankEnvironment
    task: TrainingTask
    reader: Reader
    source: Source
    device: torch.device
    reporter: Reporter
    progress: Progress


def train(
    config: TrainConfig, training: TrainingConfig, rank: RankEnvironment, reporter: Reporter
) -> Outcome:
    """Train until the end, or until a rank gets SIGTERM.

    Raises TrainerError, and what the user's code and torch raise.
    """
    progress = Progress(rank.rank)
    _refuse_impossible_schedule(training, rank)
    torch.manual_seed(training.seed)  # what the builder draws is the same on all ranks
    task = with_compilable_loss(build_task(config))
    reader = _reader(task, training)
    with _source(reader, training, rank) as source:
        return _train(config, training, rank, reporter, progress, reader, source)


def _train(  # noqa: PLR0913  one of each thing that it connects
    config: TrainConfig,
    training: TrainingConfig,
    rank: RankEnvironment,
    reporter: Reporter,
    progress: Progress,
    reader: Reader,
    source: Source,
) -> Outcome:
    """As `train`, once the task is built."""
    task = reader.task
    store = meet(rank, progress.say)
    device = _join(rank, store)
    progress.say(f"{rank.world_size} ranks have met, on {device.type}")
    setting = Setting(
        config=config,
        training=training,
        rank=rank,
        task=task,
        reader=reader,
        source=source,
        device=device,
        reporter=reporter,
        progress=progress,
    )
    sharding = _sharding(setting)
    model = parallelize(task, training, sharding)
    optimizer = task.optimizer(model.named_parameters())
    prepare_optimizer(optimizer, model)
    stop = StopRequest()
    checkpoints = Checkpoints(
        config=training.checkpoint,
        fails_on_nonfinite=training.fails_on_nonfinite_loss,
        environment=rank,
        state=TrainedState(model=model, optimizer=optimizer),
        reporter=reporter,
        progress=progress,
    )
    position = checkpoints.resume()
    torch.manual_seed(derived_seed(training.seed, "rank", str(rank.rank), str(position.step)))

    hang_watch = HangWatch(rank, store, reporter.clock)
    step = _step(setting, sharding, model, optimizer, checkpoints)
    loop = _loop(setting, store, step, checkpoints, position, stop, hang_watch)
    _tell_peak(setting)
    stop.listen()
    with hang_watch:
        try:
            is_complete = loop.run()
            if device.type == "cuda":
                reporter.update(peak_device_bytes=torch.cuda.max_memory_allocated(device))
            is_saved = checkpoints.save(loop.position)
        except NonfiniteLossError:
            checkpoints.finish()  # of an earlier step, which is good
            _leave()  # all ranks say the same: none is to miss another
            raise
        _leave()
    if is_complete:
        return Outcome.COMPLETED
    return Outcome.STOPPED_SAVED if is_saved else Outcome.STOPPED_UNSAVED


def _refuse_impossible_schedule(training: TrainingConfig, rank: RankEnvironment) -> None:
    """Before anybody is waited for."""
    accumulation_steps(training.global_batch_size, training.micro_batch_size, rank.world_size)
    samples_to_train(training)


def _reader(task: TrainingTask, training: TrainingConfig) -> Reader:
    lengths = training.data.pad_to
    return Reader(
        task=task,
        seed=training.seed,
        used_samples=used_samples(training, len(task.dataset)),
        padding=Padding(lengths=lengths, resize=task.pad or resized) if lengths else None,
    )


def _source(
    reader: Reader, training: TrainingConfig, rank: RankEnvironment
) -> AbstractContextManager[Source]:
    count = training.data.workers
    if not count:
        return nullcontext(reader)
    seed = derived_seed(training.seed, "data", str(rank.rank), str(rank.attempt))
    return DataWorkers(reader, count, rank=rank.rank, seed=seed)


def _sharding(setting: Setting) -> Sharding:
    rank = setting.rank
    return Sharding(
        config=setting.training.sharding,
        workers=rank.world_size // rank.local_world_size,
        ranks_per_worker=rank.local_world_size,
        device=setting.device,
        dtype=compute_dtype(setting.training.precision),
    )


def _step(
    setting: Setting,
    sharding: Sharding,
    model: nn.Module,
    optimizer: Optimizer,
    checkpoints: Checkpoints,
) -> OptimizerStep:
    max_grad_norm = setting.training.max_grad_norm
    clips = max_grad_norm is not None
    weights = working_weights(model, sharding.dtype, clips=clips)
    return OptimizerStep(
        task=setting.task,
        model=model,
        weights=weights,
        update=update_by(optimizer, weights, clips=clips),
        max_grad_norm=max_grad_norm,
        ranks=setting.rank.world_size,
        replicas=sharding.replicas,
        device=setting.device,
        before_update=checkpoints.before_update,
        split=StepSplit(setting.reporter.clock, timeline_of(setting.device)),
    )


def _batches(setting: Setting, position: Position, split: StepSplit) -> Batches:
    training, rank = setting.training, setting.rank
    batches = Batches(
        reader=setting.reader,
        source=setting.source,
        micro_batch=training.micro_batch_size,
        per_step=accumulation_steps(
            training.global_batch_size, training.micro_batch_size, rank.world_size
        ),
        rank=rank.rank,
        ranks=rank.world_size,
        device=setting.device,
        split=split,
    )
    if isinstance(setting.source, DataWorkers):
        setting.source.begin(batches.positions(position.samples, samples_to_train(training)))
    return batches


def _loop(  # noqa: PLR0913  one of each thing that it connects
    setting: Setting,
    store: TCPStore,
    step: OptimizerStep,
    checkpoints: Checkpoints,
    position: Position,
    stop: StopRequest,
    hang_watch: HangWatch,
) -> Loop:
    training, reporter, progress = setting.training, setting.reporter, setting.progress
    batches = _batches(setting, position, step.split)
    compilation = set_up_compilation(
        setting.config, training, step, batches, position.samples, reporter, progress
    )
    windows = set_up_windows(
        training.profile,
        setting.rank,
        store,
        setting.device,
        compilation,
        checkpoints,
        reporter,
        progress,
    )
    return Loop(
        training=training,
        last_sample=samples_to_train(training),
        position=position,
        step=step,
        lead=1 if setting.device.type == "cuda" else 0,
        split=step.split,
        batches=batches,
        checkpoints=checkpoints,
        compilation=compilation,
        hang_watch=hang_watch,
        wishes=Wishes(stop=stop, save=checkpoints.wish, window=windows.wish),
        windows=windows,
        reporter=reporter,
        progress=progress,
    )


def _tell_peak(setting: Setting) -> None:
    """What utilisation is reckoned by, and of which GPU; only GPUs have a peak that is known."""
    if setting.device.type == "cuda":
        uuid = torch.cuda.get_device_properties(setting.device).uuid
        setting.reporter.update(gpu_uuid=f"GPU-{uuid}")
        name = torch.cuda.get_device_name(setting.device)
        peak = peak_flops(name, setting.training.precision)
        flops = flops_per_sample(setting.task) if peak else None
        setting.reporter.update(peak_flops=peak, flops_per_sample=flops)


def _join(rank: RankEnvironment, store: Store) -> torch.device:
    """Make the group of all ranks. The device of this one. Raises RendezvousError."""
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", rank.local_rank)
        torch.cuda.set_device(device)
    # What is gathered beside an update is not to wait until that leaves multiprocessors free.
    os.environ.setdefault("TORCH_NCCL_HIGH_PRIORITY", "1")
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    try:
        dist.init_process_group(
            backend,
            store=store,
            rank=rank.rank,
            world_size=rank.world_size,
            timeout=timedelta(seconds=min(JOIN_SECONDS, rank.rendezvous_seconds)),
        )
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise RendezvousError(f"rank {rank.rank} did not meet its peers: {reason}") from None
    set_timeouts(TIMEOUTS_PER_DEADLINE * rank.rendezvous_seconds)
    return device


def _leave() -> None:
    """Together: rank 0 hosts the store, and nobody should miss it."""
    dist.barrier()
    dist.destroy_process_group()
