"""Processes of a rank that read micro-batches ahead of its steps: `spec.training.data.workers`.

They are forked once the builder has returned, so that the data needs no pickling and its memory is
shared. That is before the rank has threads of torch's, connections and CUDA, which a fork harms.
"""

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only
from torch.utils.data import DataLoader, Dataset

from kopeck_trainer.errors import DataWorkerError, TrainerError
from kopeck_trainer.ranks import signal_name
from kopeck_trainer.reading import Reader

AHEAD = 2
"""Micro-batches that each process may be ahead, torch's own default."""

_LOST = "DataLoader worker (pid"
"""So begins what torch says in the rank when one of them dies, whatever the rank is doing."""


class DataWorkers:
    """Reads in the order of the positions, whichever process is the faster one.

    Leaving the context ends the processes, and names one that died. It is to be entered by the
    main thread, which torch tells by a signal handler of such a death.
    """

    def __init__(self, reader: Reader, count: int, *, rank: int, seed: int) -> None:
        """`seed` is for the random numbers that the data draws."""
        self._rank = rank
        self._requests = _Requests()
        self._loader: DataLoader[bytes | _Failure] = DataLoader(
            _Answers(reader),
            sampler=self._requests,
            batch_size=None,
            collate_fn=_unchanged,
            num_workers=count,
            prefetch_factor=AHEAD,
            persistent_workers=True,
            multiprocessing_context="fork",
            worker_init_fn=_outlive_a_stop,
            generator=torch.Generator().manual_seed(seed),
        )
        self._answers: Iterator[bytes | _Failure] = iter(())
        self._processes: set[BaseProcess] = set()

    def __enter__(self) -> Self:
        others = set(multiprocessing.active_children())
        iter(self._loader)  # starts them, and nothing is requested yet
        self._processes = set(multiprocessing.active_children()) - others
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        died = next((each for each in self._processes if each.exitcode is not None), None)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's handler would tell of those below
        for process in self._processes:
            process.kill()  # they have nothing to lose, and may be in a long read
            process.join()
        # Beside torch's sentence it may be a broken connection to the one that died.
        if died and isinstance(error, Exception) and not isinstance(error, TrainerError):
            raise DataWorkerError(
                f"a data worker of rank {self._rank} (process {died.pid}) {_end(died)}; where"
                " memory or /dev/shm is short, lower spec.training.data.workers"
            ) from None

    def begin(self, positions: Iterable[range]) -> None:
        """Read these micro-batches from now on. The first will be asked for as samples."""
        self._requests.positions = positions
        self._answers = iter(self._loader)

    def samples(self, _positions: range) -> list[Any]:
        """The first."""
        samples: list[Any] = self._next()
        return samples

    def batch(self, _positions: range) -> Any:
        """The next. Raises what reading it has raised."""
        return self._next()

    def _next(self) -> Any:
        answer = next(self._answers)
        if isinstance(answer, _Failure):
            raise answer.error()
        return pickle.loads(answer)  # noqa: S301  of our own process


def is_data_worker_lost(error: BaseException) -> bool:
    """True where `error` says that a process which reads ahead has died."""
    return isinstance(error, RuntimeError) and str(error).startswith(_LOST)


@dataclass
class _Requests:
    """What torch's loader takes for a sampler: (positions, whether to make a batch of them)."""

    positions: Iterable[range] = ()

    def __iter__(self) -> Iterator[tuple[range, bool]]:
        for number, positions in enumerate(self.positions):
            yield positions, number > 0


@dataclass(frozen=True)
class _Answers(Dataset["bytes | _Failure"]):
    """What torch's loader takes for a data set.

    Answers are pickled here: one that cannot be would be lost on its way, and waited for for ever.
    """

    reader: Reader

    def __getitem__(self, request: tuple[range, bool]) -> "bytes | _Failure":
        positions, is_batch = request
        try:
            read = self.reader.batch if is_batch else self._samples
            return bytes(ForkingPickler.dumps(read(positions)))
        except Exception as error:  # noqa: BLE001  the user's code may raise anything
            return _Failure.of(error)

    def _samples(self, positions: range) -> Any:
        """Copies: of a view the whole storage would be sent, which may be all of the data."""
        return tree_map_only(Tensor, torch.clone, self.reader.samples(positions))


@dataclass(frozen=True)
class _Failure:
    """What a read raised, on its way to the rank."""

    kind: str
    sentence: str
    trace: str
    pickled: bytes | None
    """None of what is not the same afterwards."""

    @classmethod
    def of(cls, error: Exception) -> "_Failure":
        kind, sentence, trace = type(error).__name__, str(error), traceback.format_exc()
        try:
            pickled = pickle.dumps(error)
            is_same = str(pickle.loads(pickled)) == sentence  # noqa: S301
        except Exception:  # noqa: BLE001  an exception of the user's may do anything
            return cls(kind, sentence, trace, None)
        return cls(kind, sentence, trace, pickled if is_same else None)

    def error(self) -> Exception:
        """What was raised, or what has its name and says the same."""
        error: Exception
        if self.pickled is None:
            error = type(self.kind, (Exception,), {})(self.sentence)
        else:
            error = pickle.loads(self.pickled)  # noqa: S301  of our own process
        error.add_note(f"In a data worker:\n{self.trace}")
        return error


def _unchanged(answer: Any) -> Any:
    return answer


def _outlive_a_stop(_number: int) -> None:
    """The launcher signals all processes of a rank, which has a step to finish and to save."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _end(process: BaseProcess) -> str:
    code = process.exitcode or 0
    return f"was ended by {signal_name(-code)}" if code < 0 else f"exited with code {code}"
