"""Every way in which launcher and ranks end before their work is done.

TrainerError              1
├── ConfigurationError   78   a field of the TrainingJob is wrong; another attempt is too
├── RendezvousError     180   the workers did not find each other in time
├── PeerLostError            181   another rank went away; the cause is in its worker
├── ModeFailedError         183   a compile mode on trial failed; the next attempt leaves it out
├── NonfiniteLossError  184   the loss is NaN or infinite, and that is to end the attempt
├── DataWorkerError      1   a process that reads ahead died
├── CheckpointError      1   a checkpoint could not be written
└── AttemptReplacedError       1   a newer attempt of this job owns the checkpoints
"""

from typing import ClassVar

from kopeck_trainer import exit_codes


class TrainerError(Exception):
    """Told to the user as one sentence, without a traceback."""

    exit_code: ClassVar[int] = exit_codes.FAILED


class ConfigurationError(TrainerError):
    """A field of the TrainingJob that cannot work: which, what is wrong, what to write instead."""

    exit_code = exit_codes.CONFIGURATION

    def __init__(self, field: str, wrong: str, instead: str) -> None:
        super().__init__(field, wrong, instead)  # pickle makes it anew of these

    def __str__(self) -> str:
        return "{}: {}; {}".format(*self.args)


class RendezvousError(TrainerError):
    exit_code = exit_codes.RENDEZVOUS


class PeerLostError(TrainerError):
    exit_code = exit_codes.PEER_LOST


class ModeFailedError(TrainerError):
    exit_code = exit_codes.MODE_FAILED


class NonfiniteLossError(TrainerError):
    """Raised by all ranks after the same step."""

    exit_code = exit_codes.NONFINITE_LOSS


class DataWorkerError(TrainerError):
    pass


class CheckpointError(TrainerError):
    pass


class AttemptReplacedError(TrainerError):
    pass
