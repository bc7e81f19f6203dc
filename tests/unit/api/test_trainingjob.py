"""The spec as the operator reads it: checked again behind the API server."""

import pytest

from kopeck.api.errors import SpecError
from kopeck.api.trainingjob import parse_spec
from tests.builders import a_job


@pytest.mark.parametrize(
    ("workers", "processes"),
    [
        ({"replicas": 2}, 1),
        ({"replicas": 2, "gpusPerWorker": 8}, 8),
        ({"replicas": 2, "gpusPerWorker": 8, "processesPerWorker": 4}, 4),
    ],
)
def test_a_pod_has_a_rank_for_each_gpu_unless_told_otherwise(
    workers: dict[str, int], processes: int
) -> None:
    assert parse_spec(a_job(workers=workers)["spec"]).workers.processes == processes


@pytest.mark.parametrize(
    ("training", "planned"), [({"steps": 20}, 320), ({"steps": None, "samples": 640}, 640)]
)
def test_training_ends_after_its_steps_or_its_samples(
    training: dict[str, int | None], planned: int
) -> None:
    spec = parse_spec(a_job(training=training)["spec"])
    assert spec.training is not None
    assert spec.training.planned_samples == planned


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"image": ""}, "spec.image: string should have at least 1 character"),
        ({"colour": "red"}, "spec.colour: extra inputs are not permitted"),
        ({"workers": {"replicas": 0}}, "spec.workers.replicas: input should be greater than or"),
        ({"entrypoint": "no colon"}, "spec.entrypoint: string should match pattern '^[A-Za-z_]"),
    ],
)
def test_a_spec_that_cannot_be_read_is_refused_by_a_sentence_that_names_the_field(
    spec: dict[str, object], said: str
) -> None:
    with pytest.raises(SpecError) as refused:
        parse_spec(a_job(**spec)["spec"])
    assert str(refused.value).startswith(said)
