"""The environment of a training pod as the launcher reads it, and of a rank as it gets it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kopeck_trainer.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class PodEnvironment:
    """What the operator tells one worker."""

    config_path: Path
    namespace: str
    worker: int
    """Index of this worker, 0 hosts the rendezvous."""
    workers: int
    processes: int
    """Ranks of this worker."""
    master_host: str
    master_port: int
    rendezvous_id: str
    rendezvous_seconds: float
    """Longest wait for the other workers."""
    grace_seconds: float
    """From SIGTERM to the kubelet's SIGKILL."""
    termination_log: Path

    @property
    def world_size(self) -> int:
        return self.workers * self.processes

    @property
    def first_rank(self) -> int:
        return self.worker * self.processes


def pod_environment(environ: Mapping[str, str]) -> PodEnvironment:
    """Raises ConfigurationError for what is missing or no number."""
    return PodEnvironment(
        config_path=Path(_text(environ, "KOPECK_CONFIG")),
        namespace=_text(environ, "KOPECK_NAMESPACE"),
        worker=_integer(environ, "KOPECK_WORKER"),
        workers=_integer(environ, "KOPECK_WORKERS"),
        processes=_integer(environ, "KOPECK_PROCESSES_PER_WORKER"),
        master_host=_text(environ, "KOPECK_MASTER_HOST"),
        master_port=_integer(environ, "KOPECK_MASTER_PORT"),
        rendezvous_id=_text(environ, "KOPECK_RENDEZVOUS_ID"),
        rendezvous_seconds=_integer(environ, "KOPECK_RENDEZVOUS_SECONDS"),
        grace_seconds=_integer(environ, "KOPECK_GRACE_SECONDS"),
        termination_log=Path(_text(environ, "KOPECK_TERMINATION_LOG")),
    )


@dataclass(frozen=True, kw_only=True)
class RankEnvironment:
    """What the launcher tells one rank."""

    config_path: Path
    job_uid: str
    attempt: int
    rank: int
    local_rank: int
    world_size: int
    local_world_size: int
    """Ranks of this rank's worker; every worker has as many."""
    master_address: str
    """Of the store that rank 0 hosts; a name may be unknown until worker 0 runs."""
    master_port: int
    rendezvous_seconds: float
    """Longest wait for the other ranks, and for their first step."""
    hang_seconds: float
    """Longest wait for a later step."""
    run_directory: Path | None
    """Where ranks leave files for the launcher; None without one."""
    annotations: Path | None
    """A file with the annotations of this worker's pod; None where nothing can be asked."""


def rank_environment(environ: Mapping[str, str]) -> RankEnvironment:
    """Raises ConfigurationError for what is missing or no number."""
    return RankEnvironment(
        config_path=Path(_text(environ, "KOPECK_CONFIG")),
        job_uid=_text(environ, "KOPECK_JOB_UID"),
        attempt=_integer(environ, "KOPECK_ATTEMPT"),
        rank=_integer(environ, "RANK"),
        local_rank=_integer(environ, "LOCAL_RANK"),
        world_size=_integer(environ, "WORLD_SIZE"),
        local_world_size=_integer(environ, "LOCAL_WORLD_SIZE"),
        master_address=_text(environ, "MASTER_ADDR"),
        master_port=_integer(environ, "MASTER_PORT"),
        rendezvous_seconds=_integer(environ, "KOPECK_RENDEZVOUS_SECONDS"),
        hang_seconds=_integer(environ, "KOPECK_HANG_SECONDS"),
        run_directory=Path(directory) if (directory := environ.get("KOPECK_RUN_DIR")) else None,
        annotations=Path(podinfo) if (podinfo := environ.get("KOPECK_PODINFO")) else None,
    )


def variables_of_rank(
    pod: PodEnvironment,
    local_rank: int,
    master_address: str,
    run_directory: Path,
    started_at: float,
) -> dict[str, str]:
    """What torchrun would set for one rank. The launcher started at `started_at`, monotonic.

    No PET_* (a torchrun started by the user would multiply the ranks), and no
    TORCHELASTIC_USE_AGENT_STORE: rank 0 hosts the store, there is no agent.
    """
    return {
        "RANK": str(pod.first_rank + local_rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(pod.world_size),
        "LOCAL_WORLD_SIZE": str(pod.processes),
        "GROUP_RANK": str(pod.worker),
        "MASTER_ADDR": master_address,
        "MASTER_PORT": str(pod.master_port),
        "TORCHELASTIC_RUN_ID": pod.rendezvous_id,
        "KOPECK_RUN_DIR": str(run_directory),
        "KOPECK_STARTED_AT": f"{started_at:.3f}",
    }


def _text(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise ConfigurationError(name, "it is not set", "start the trainer as the operator does")
    return value


def _integer(environ: Mapping[str, str], name: str) -> int:
    value = _text(environ, name)
    try:
        return int(value)
    except ValueError:
        raise ConfigurationError(name, f"{value!r} is no whole number", "write one") from None
