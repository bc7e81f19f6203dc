"""The points of a tuning: ways to train a job's global batch."""

from collections.abc import Sequence
from dataclasses import dataclass

from kopeck.api.errors import ConfigError, SpecError
from kopeck.api.training import ActivationsSpec, TrainingSpec
from kopeck.api.trainingjob import TrainingJobSpec

_MIDDLE_BUDGET = 0.5


@dataclass(frozen=True, kw_only=True)
class Point:
    """One way to train the global batch."""

    micro_batch: int
    """Samples of one forward pass of one rank."""
    accumulation: int
    """Micro-batches of each rank in one step."""
    activations: ActivationsSpec

    @property
    def activations_name(self) -> str:
        """As none, or budget 0.5."""
        budget = self.activations.memory_budget
        return self.activations.mode if budget is None else f"{self.activations.mode} {budget:g}"

    def __str__(self) -> str:
        return f"micro-batch {self.micro_batch} × {self.accumulation}, {self.activations_name}"


def points_of(
    spec: TrainingJobSpec,
    micro_batches: Sequence[int] | None,
    activations: Sequence[ActivationsSpec] | None,
) -> list[Point]:
    """All of them, by activation mode from the smallest micro-batch to the largest.

    Micro-batches of None: that of the job, and divisors of a rank's part of the global batch that
    at least double. Activations of None: every mode that the job can have.
    Raises SpecError for a job that cannot be tuned, ConfigError for what its points cannot be.
    """
    own = tunable_training(spec)
    ranks = spec.workers.replicas * spec.workers.processes
    per_rank = _samples_per_rank(own.global_batch_size, ranks)
    if micro_batches is None:
        wanted = {own.micro_batch_size, *_doubling_divisors(per_rank)}
        micro_batches = [size for size in wanted if per_rank % size == 0]
    for size in micro_batches:
        _refuse_what_does_not_divide(size, per_rank)
    if activations is None:
        activations = _all_activations(own)
    for each in activations:
        _refuse_what_eager_ignores(each, own)
    return [
        Point(micro_batch=size, accumulation=per_rank // size, activations=each)
        for each in dict.fromkeys(activations)
        for size in sorted(set(micro_batches))
    ]


def tunable_training(spec: TrainingJobSpec) -> TrainingSpec:
    """`spec.training` of a job with a builder. Raises SpecError for other jobs."""
    if spec.entrypoint is None:
        wrong = "is missing, and the batches of a program of your own are its own"
        raise SpecError("spec.entrypoint", wrong, "name a builder as package.module:function")
    if spec.training is None:
        wrong = "is missing, so there is nothing to tune"
        raise SpecError("spec.training", wrong, "write steps, globalBatchSize and microBatchSize")
    return spec.training


def _samples_per_rank(global_batch: int, ranks: int) -> int:
    """Of one step. Raises SpecError if they do not divide."""
    samples, rest = divmod(global_batch, ranks)
    if rest:
        wrong = f"{global_batch} is no multiple of the job's {ranks} ranks"
        raise SpecError("spec.training.globalBatchSize", wrong, f"use {(samples + 1) * ranks}")
    return samples


def _all_activations(own: TrainingSpec) -> list[ActivationsSpec]:
    """From the one that needs most memory; the budget is the job's, if it has one."""
    modes: list[ActivationsSpec] = [
        ActivationsSpec(mode="none"),
        ActivationsSpec(mode="selective"),
        ActivationsSpec(mode="budget", memory_budget=_MIDDLE_BUDGET),
        ActivationsSpec(mode="full"),
    ]
    if own.activations and own.activations.mode == "budget":
        modes[2] = own.activations
    return [each for each in modes if not _is_ignored(each, own)]


def _is_ignored(activations: ActivationsSpec, own: TrainingSpec) -> bool:
    """The budget is the compiler's."""
    return activations.mode == "budget" and own.compile.mode == "off"


def _refuse_what_eager_ignores(activations: ActivationsSpec, own: TrainingSpec) -> None:
    if _is_ignored(activations, own):
        wrong = "budget is the compiler's, and the job's spec.training.compile.mode is off"
        raise ConfigError("--activations", wrong, "use some of none, selective, full")


def _doubling_divisors(number: int) -> list[int]:
    """1, and each next divisor that is at least twice the one before."""
    kept = [1]
    for candidate in range(2, number + 1):
        if number % candidate == 0 and candidate >= 2 * kept[-1]:
            kept.append(candidate)
    return kept


def _refuse_what_does_not_divide(size: int, per_rank: int) -> None:
    if size < 1 or per_rank % size:
        divisors = ", ".join(map(str, _doubling_divisors(per_rank)))
        wrong = f"{size} does not divide the {per_rank} samples of a rank in a step"
        raise ConfigError("--micro-batch", wrong, f"use some of {divisors}")
