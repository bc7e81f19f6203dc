"""The environment says whose sidecar this is; what is wrong there is named."""

from pathlib import Path

import pytest

from kopeck_exporter.configuration import (
    Configuration,
    ConfigurationError,
    read_configuration,
)

ENVIRONMENT = {
    "KOPECK_JOB": "llama",
    "KOPECK_WORKER": "3",
    "KOPECK_ATTEMPT": "2",
    "KOPECK_PROCESSES_PER_WORKER": "8",
    "KOPECK_SOCKET": "/run/kopeck/telemetry.sock",
    "KOPECK_PODINFO": "/etc/podinfo/annotations",
}


def test_the_port_is_9401_unless_another_is_set() -> None:
    assert read_configuration(ENVIRONMENT) == Configuration(
        job="llama",
        worker=3,
        attempt=2,
        processes=8,
        socket=Path("/run/kopeck/telemetry.sock"),
        podinfo=Path("/etc/podinfo/annotations"),
        port=9401,
    )
    assert read_configuration(ENVIRONMENT | {"KOPECK_EXPORTER_PORT": "9500"}).port == 9500


def test_gpus_are_read_here_and_dcgm_is_asked_only_where_the_environment_says_so() -> None:
    usual = read_configuration(ENVIRONMENT)
    assert (usual.samples_gpus, usual.dcgm_endpoint) == (False, None)
    url = "http://10.0.0.1:9400/metrics"
    asked = {"KOPECK_GPU_SAMPLING": "sidecar", "KOPECK_DCGM_ENDPOINT": url}
    special = read_configuration(ENVIRONMENT | asked)
    assert (special.samples_gpus, special.dcgm_endpoint) == (True, url)


@pytest.mark.parametrize("url", ["node:9400", "file:///etc/passwd", "http://", "http:///metrics"])
def test_an_endpoint_that_is_no_url_is_named(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"KOPECK_DCGM_ENDPOINT: .* use http://HOST:9400"):
        read_configuration(ENVIRONMENT | {"KOPECK_DCGM_ENDPOINT": url})


@pytest.mark.parametrize("value", [None, ""])
@pytest.mark.parametrize("name", ENVIRONMENT)
def test_a_missing_variable_is_named(name: str, value: str | None) -> None:
    environment = {each: text for each, text in ENVIRONMENT.items() if each != name}
    if value is not None:
        environment[name] = value
    with pytest.raises(ConfigurationError, match=f"^{name} is not set"):
        read_configuration(environment)


@pytest.mark.parametrize("value", ["x", "-1", "1.5", " 1", "9" * 5000, "²"])
@pytest.mark.parametrize("name", ["KOPECK_WORKER", "KOPECK_ATTEMPT", "KOPECK_EXPORTER_PORT"])
def test_a_number_that_is_none_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: .* is no whole number; use 0 or more"):
        read_configuration(ENVIRONMENT | {name: value})


def test_a_worker_has_at_least_one_process() -> None:
    with pytest.raises(ConfigurationError, match="use 1 or more"):
        read_configuration(ENVIRONMENT | {"KOPECK_PROCESSES_PER_WORKER": "0"})


def test_a_port_is_at_most_65535() -> None:
    with pytest.raises(ConfigurationError, match="65536 is no port; use 1 to 65535"):
        read_configuration(ENVIRONMENT | {"KOPECK_EXPORTER_PORT": "65536"})
