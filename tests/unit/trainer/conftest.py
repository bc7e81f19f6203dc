from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.trainer.local_workers import LocalJob


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for the session: the same model is compiled once."""
    return tmp_path_factory.mktemp("inductor")


@pytest.fixture
def job(tmp_path: Path, compile_cache: Path) -> Iterator[LocalJob]:
    environ = {"TORCHINDUCTOR_CACHE_DIR": str(compile_cache), "OMP_NUM_THREADS": "1"}
    local_job = LocalJob(tmp_path, environ)
    yield local_job
    local_job.kill_all()
