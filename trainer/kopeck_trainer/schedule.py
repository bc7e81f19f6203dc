"""The arithmetic of a training: batches, steps, and which positions of the data a rank takes."""

from kopeck_trainer.config import TrainingConfig
from kopeck_trainer.errors import ConfigurationError


def accumulation_steps(global_batch: int, micro_batch: int, ranks: int) -> int:
    """Micro-batches of each rank per optimizer step.

    Raises ConfigurationError if they do not divide.
    """
    steps, rest = divmod(global_batch, at_once := micro_batch * ranks)
    if rest or steps == 0:
        raise ConfigurationError(
            "spec.training.globalBatchSize",
            f"{global_batch} is no multiple of microBatchSize × ranks ({micro_batch} × {ranks})",
            f"use {(steps + 1) * at_once}",
        )
    return steps


def samples_to_train(training: TrainingConfig) -> int:
    """Samples of the whole training, a multiple of the global batch.

    Raises ConfigurationError where `samples` would end inside a step.
    """
    if training.samples is None:
        return (training.steps or 0) * training.global_batch_size
    steps, rest = divmod(training.samples, training.global_batch_size)
    if rest:
        raise ConfigurationError(
            "spec.training.samples",
            f"{training.samples} is no multiple of globalBatchSize ({training.global_batch_size})",
            f"use {(steps + 1) * training.global_batch_size}",
        )
    return training.samples


def used_samples(training: TrainingConfig, dataset_samples: int) -> int:
    """Samples of the data that each epoch takes.

    Raises ConfigurationError where dropping the rest drops all.
    """
    if not training.data.drop_last:
        return dataset_samples
    batches = dataset_samples // training.global_batch_size
    if batches == 0:
        raise ConfigurationError(
            "spec.training.data.dropLast",
            f"the data has {dataset_samples} samples, less than one global batch",
            f"use a globalBatchSize of at most {dataset_samples}",
        )
    return batches * training.global_batch_size


def micro_batch_positions(
    consumed: int, micro_batch: int, *, index: int, rank: int, ranks: int
) -> range:
    """Positions in the data that `rank` reads for its micro-batch `index` of a step.

    `consumed` is what the job had taken before this step. All ranks together read the same
    positions whatever their number.
    """
    first = consumed + (index * ranks + rank) * micro_batch
    return range(first, first + micro_batch)
