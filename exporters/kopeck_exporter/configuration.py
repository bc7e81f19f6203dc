"""What the exporter is told by its environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PORT = 9401


class ConfigurationError(Exception):
    """One sentence: which variable, what is wrong, what to write instead."""


@dataclass(frozen=True)
class Configuration:
    """The worker that this sidecar speaks for, and where it listens.

    `processes` is the number of ranks of the worker; port 0 takes any free one.
    """

    job: str
    worker: int
    attempt: int
    processes: int
    socket: Path
    podinfo: Path
    port: int
    samples_gpus: bool = False
    """Whether the GPUs are seen, and read, here in place of the training container."""
    dcgm_endpoint: str | None = None
    """URL of the metrics of a DCGM exporter on this node."""


def read_configuration(environment: Mapping[str, str]) -> Configuration:
    """Raises ConfigurationError for the first variable that is missing or wrong."""
    return Configuration(
        job=_text(environment, "KOPECK_JOB"),
        worker=_whole(environment, "KOPECK_WORKER", at_least=0),
        attempt=_whole(environment, "KOPECK_ATTEMPT", at_least=0),
        processes=_whole(environment, "KOPECK_PROCESSES_PER_WORKER", at_least=1),
        socket=Path(_text(environment, "KOPECK_SOCKET")),
        podinfo=Path(_text(environment, "KOPECK_PODINFO")),
        port=_port(environment, "KOPECK_EXPORTER_PORT"),
        samples_gpus=environment.get("KOPECK_GPU_SAMPLING") == "sidecar",
        dcgm_endpoint=_url_if_set(environment, "KOPECK_DCGM_ENDPOINT"),
    )


def _text(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise ConfigurationError(f"{name} is not set; the operator sets it in the pod, so set it")
    return value


def _whole(environment: Mapping[str, str], name: str, *, at_least: int) -> int:
    text = _text(environment, name)
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < at_least:
        raise ConfigurationError(f"{name}: {text!r} is no whole number; use {at_least} or more")
    return int(text)


def _url_if_set(environment: Mapping[str, str], name: str) -> str | None:
    url = environment.get(name)
    if not url:
        return None
    if not re.fullmatch(r"http://[^/\s]+(/\S*)?", url):
        raise ConfigurationError(f"{name}: {url!r} is no URL; use http://HOST:9400/metrics")
    return url


def _port(environment: Mapping[str, str], name: str) -> int:
    if not environment.get(name):
        return DEFAULT_PORT
    port = _whole(environment, name, at_least=0)
    if port > 65535:
        raise ConfigurationError(f"{name}: {port} is no port; use 1 to 65535")
    return port
