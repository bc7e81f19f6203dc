"""PID 1 of the training container: waits for worker 0, starts the ranks, tells how they ended."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from kopeck_trainer import exit_codes
from kopeck_trainer.closing import LastReport, Moment, closed, tell_exporter
from kopeck_trainer.compilation.archive import CacheArchive, archive_file
from kopeck_trainer.compilation.archiving import archiving
from kopeck_trainer.config import TrainConfig, read_config
from kopeck_trainer.cpus import usable_cpus
from kopeck_trainer.environment import PodEnvironment, pod_environment, variables_of_rank
from kopeck_trainer.errors import ConfigurationError, TrainerError
from kopeck_trainer.exit_codes import ExitClass, exit_class
from kopeck_trainer.grace import Grace
from kopeck_trainer.nccl.binding import cpus_of_ranks
from kopeck_trainer.nccl.environment import nccl_environment
from kopeck_trainer.nccl.machine import this_machine
from kopeck_trainer.process_start import process_started_at
from kopeck_trainer.ranks import (
    RankEnd,
    Ranks,
    first_failure,
    start_ranks,
    supervise,
)
from kopeck_trainer.rendezvous import fully_qualified, wait_for_master
from kopeck_trainer.run_directory import error_file, read_json, report_file
from kopeck_trainer.sampler import sampling
from kopeck_trainer.schedule import accumulation_steps, samples_to_train
from kopeck_trainer.signals import STOP_SIGNALS
from kopeck_trainer.termination import termination_message, write_termination_message

GRACE_MARGIN_SECONDS = 10.0
"""Left of the pod's grace period for reaping the ranks, archiving, and the termination message."""

LEAVING_MARGIN_SECONDS = 5.0
"""Left of it when an archive of the compile cache is given up."""

QUIET_AUTOTUNING = {
    "TORCHINDUCTOR_AUTOTUNE_NUM_CHOICES_DISPLAYED": "0",
    "TORCHINDUCTOR_MAX_AUTOTUNE_REPORT_CHOICES_STATS": "0",
    "TORCHINDUCTOR_MAX_AUTOTUNE_PRUNE_CHOICES_BASED_ON_SHARED_MEM": "1",
}
"""It would log 20 lines for each product, and an error for each candidate that does not fit."""

BRIEF_PROFILING = {
    "TEARDOWN_CUPTI": "1",
    "KINETO_LOG_LEVEL": "99",
}
"""After a trace window CUPTI goes, which would slow down every later step; and nothing is said of
GPUs that a CPU's training does not have. Both are read when torch is imported."""

RESOLV_CONF = Path("/etc/resolv.conf")
LOOPBACK = "127.0.0.1"


class StoppedError(TrainerError):
    exit_code = 128 + signal.SIGTERM


@dataclass(frozen=True, kw_only=True)
class Ending:
    """Why this worker ends, and the code that says so."""

    exit_code: int
    exit_class: ExitClass
    message: str
    failure: RankEnd | None = None
    reports: list[LastReport] = field(default_factory=list)


def main() -> int:
    """The exit code of this worker. Watched signals are blocked."""
    started_at = process_started_at()
    try:
        pod = pod_environment(os.environ)
    except ConfigurationError as error:
        _say(str(error))
        return error.exit_code
    with sampling(os.environ):
        ending = _launch(pod, started_at)
    _say(ending.message)
    now = Moment.now()
    reports = [closed(report, started_at, now) for report in ending.reports]
    tell_exporter(reports, os.environ)
    _write_termination_message(pod.termination_log, ending, reports)
    return ending.exit_code


def _launch(pod: PodEnvironment, started_at: float) -> Ending:
    run_directory = Path(tempfile.mkdtemp(prefix="kopeck-"))
    try:
        config = read_config(pod.config_path)
        _refuse_impossible_schedule(config, pod.world_size)
        machine = this_machine()
        environ = nccl_environment(
            environment_of_ranks(os.environ, pod.processes),
            workers=pod.workers,
            machine=machine,
            say=_say,
        )
        cpus = cpus_of_ranks(environ, ranks=pod.processes, machine=machine, say=_say)
        archive = _compile_cache(config, environ)
        if archive:
            archive.unpack()
        master_address = _master_address(pod, config)
        variables = [
            variables_of_rank(pod, local_rank, master_address, run_directory, started_at)
            for local_rank in range(pod.processes)
        ]
        ranks = _start(_program(config), environ, variables, cpus, pod.first_rank)
        ends, archiving_seconds = _supervise(
            ranks, pod, archive if pod.worker == 0 else None, run_directory
        )
        return _ending(ends, archiving_seconds, run_directory)
    except TrainerError as error:
        return Ending(
            exit_code=error.exit_code,
            exit_class="failed" if isinstance(error, StoppedError) else exit_class(error.exit_code),
            message=str(error),
        )
    finally:
        shutil.rmtree(run_directory, ignore_errors=True)


def _supervise(
    ranks: Ranks, pod: PodEnvironment, archive: CacheArchive | None, run_directory: Path
) -> tuple[list[RankEnd], float]:
    """How the ranks ended, and for how long they were over while the archive was not."""
    grace = Grace(pod.grace_seconds)

    def on_stop() -> None:
        grace.begin()
        _say("stopping: the ranks finish their step and save a checkpoint")

    if archive is None:
        return supervise(ranks, grace.seconds_before(GRACE_MARGIN_SECONDS), on_stop), 0.0
    patience = partial(grace.seconds_before, LEAVING_MARGIN_SECONDS)
    with archiving(archive, run_directory, pod.processes, patience):
        ends = supervise(ranks, grace.seconds_before(GRACE_MARGIN_SECONDS), on_stop)
        ended_at = monotonic()
    return ends, monotonic() - ended_at


def _refuse_impossible_schedule(config: TrainConfig, ranks: int) -> None:
    """Here too, so that all workers say so at once, without waiting for each other."""
    if config.entrypoint and (training := config.training):
        accumulation_steps(training.global_batch_size, training.micro_batch_size, ranks)
        samples_to_train(training)


def _master_address(pod: PodEnvironment, config: TrainConfig) -> str:
    """Where the ranks find the store that rank 0 hosts.

    Ranks of an entrypoint wait for it themselves, once they have imported torch.
    """
    if pod.worker == 0:
        return LOOPBACK
    host = fully_qualified(pod.master_host, pod.namespace, RESOLV_CONF.read_text())
    _say(f"waiting for worker 0 at {host}:{pod.master_port}")
    if config.entrypoint:
        return host
    return wait_for_master(
        host, pod.master_port, seconds=pod.rendezvous_seconds, pause=_pause_unless_stopped
    )


def _pause_unless_stopped(seconds: float) -> None:
    if signal.sigtimedwait(STOP_SIGNALS, seconds):
        raise StoppedError("stopped by SIGTERM while waiting for worker 0")


def _compile_cache(config: TrainConfig, environ: Mapping[str, str]) -> CacheArchive | None:
    folder = config.training.compile.cache if config.training else None
    if folder is None:
        return None
    directory = Path(environ["TORCHINDUCTOR_CACHE_DIR"])
    return CacheArchive(file=archive_file(folder, config), directory=directory, say=_say)


def _start(
    program: list[str],
    environ: Mapping[str, str],
    variables: list[dict[str, str]],
    cpus: list[frozenset[int] | None],
    first_rank: int,
) -> Ranks:
    """`variables` and `cpus` are by local rank."""
    try:
        return start_ranks(
            program, environ, variables, cpus_by_local_rank=cpus, first_rank=first_rank
        )
    except OSError as error:
        raise ConfigurationError(
            "spec.command",
            f"{program[0]} cannot be started ({error.strerror})",
            "name a program that the image has",
        ) from None


def _program(config: TrainConfig) -> list[str]:
    if config.entrypoint:
        return [sys.executable, "-m", "kopeck_trainer.rank"]
    return [*config.command, *config.args]


def environment_of_ranks(environ: Mapping[str, str], processes: int) -> dict[str, str]:
    """`environ`, with defaults for what a user id without a passwd entry lacks, and a short log."""
    return {
        "HOME": "/tmp",  # noqa: S108  the one folder that a restricted pod may write
        "USER": "kopeck",  # Inductor asks for the user's name, which uid 1000 has not
        "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor",  # noqa: S108
        "OMP_NUM_THREADS": str(max(1, usable_cpus() // processes)),
        **QUIET_AUTOTUNING,
        **BRIEF_PROFILING,
        **environ,
    }


def _ending(ends: list[RankEnd], archiving_seconds: float, run_directory: Path) -> Ending:
    failure = first_failure(ends)
    reports = [
        LastReport(
            content=read_json(report_file(run_directory, end.local_rank)),
            rank_ended_at=end.ended_at,
            archiving_seconds=archiving_seconds,
        )
        for end in ends
    ]
    if failure is None:
        return Ending(
            exit_code=exit_codes.COMPLETED,
            exit_class="completed",
            message="training completed",
            reports=reports,
        )
    return Ending(
        exit_code=failure.exit_code,
        exit_class="failed" if failure.signal_name else exit_class(failure.exit_code),
        message=_reason(failure, run_directory),
        failure=None if failure.is_clean_stop else failure,
        reports=reports,
    )


def _reason(failure: RankEnd, run_directory: Path) -> str:
    told = read_json(error_file(run_directory, failure.local_rank)).get("message")
    if told:
        return str(told)
    if failure.signal_name:
        return f"rank {failure.rank} was ended by {failure.signal_name}"
    if failure.is_clean_stop:
        return "stopped by SIGTERM after a checkpoint"
    return f"rank {failure.rank} exited with code {failure.exit_code}"


def _write_termination_message(
    path: Path, ending: Ending, reports: Sequence[Mapping[str, Any]]
) -> None:
    content = termination_message(ending.exit_class, ending.message, ending.failure, reports)
    try:
        write_termination_message(path, content)
    except OSError as error:
        _say(f"the termination message cannot be written to {path} ({error.strerror})")


def _say(sentence: str) -> None:
    sys.stderr.write(f"kopeck: {sentence}\n")
    sys.stderr.flush()
