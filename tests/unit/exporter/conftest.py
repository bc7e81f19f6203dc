"""A sidecar for one test: real socket, real HTTP, one rank."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.exporter.reporting import Sender, Sidecar, running_sidecar


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path) as running:
        yield running


@pytest.fixture
def sender(sidecar: Sidecar) -> Iterator[Sender]:
    with Sender(sidecar.socket) as connected:
        yield connected
