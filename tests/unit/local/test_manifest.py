"""What is read of a TrainingJob's file, and what is refused, each in one sentence."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kopeck.api.errors import KopeckError
from kopeck.local.manifest import read_job
from tests.builders import a_job

NO_NAME = r"metadata.name is not one that a cluster would take; begin with a letter"


def test_name_and_spec_are_read(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(a_job("tiny")))
    name, spec = read_job(file)
    assert (name, spec.image) == ("tiny", a_job("tiny")["spec"]["image"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no TrainingJob"),
        (b"\x7fELF\xff\xfe", "cannot be read"),
        (b"a: [", "cannot be read"),
        (b"a: 1\n---\nb: 2\n", "cannot be read"),
        (b"- 1\n", "holds no TrainingJob"),
        (b"kind: Pod\n", "holds no TrainingJob"),
    ],
)
def test_a_file_without_a_job_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(content)
    with pytest.raises(KopeckError, match=said):
        read_job(file)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"metadata": None}, "metadata.name is missing; give the job a name"),
        ({"metadata": [1]}, "metadata.name is missing"),
        ({"metadata": {"name": 1}}, NO_NAME),
        ({"metadata": {"name": "../../x y"}}, NO_NAME),
        ({"metadata": {"name": "a\n"}}, NO_NAME),
        ({"metadata": {"name": "a" * 300}}, NO_NAME),
        ({"spec": [1]}, "spec: input should be"),
        ({"spec": None}, "spec.image: field required"),
    ],
)
def test_a_job_that_no_cluster_would_take_is_refused(
    tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(a_job("tiny") | wrong))
    with pytest.raises(KopeckError, match=said):
        read_job(file)
