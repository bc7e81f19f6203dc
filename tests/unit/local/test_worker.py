"""What a worker on this machine is told."""

from pathlib import Path

from kopeck.api.trainingjob import parse_spec
from kopeck.local.worker import config_on
from tests.builders import a_job

TRAINING = {"steps": 4, "globalBatchSize": 8, "microBatchSize": 2}


def test_folders_of_a_cluster_are_folders_of_the_job_on_this_machine() -> None:
    saved = {"path": "/checkpoints", "everySteps": 2}
    traced = {"everySeconds": 60, "keep": "/traces"}
    spec = parse_spec(a_job(training=TRAINING | {"checkpoint": saved, "profile": traced})["spec"])
    training = config_on(Path("/here"), spec)["training"]
    assert training["checkpoint"]["path"] == "/here/checkpoints"
    assert training["profile"]["keep"] == "/here/traces"


def test_what_is_not_asked_for_has_no_folder() -> None:
    spec = parse_spec(a_job(training=TRAINING | {"profile": {"everySeconds": 60}})["spec"])
    assert "/here" not in str(config_on(Path("/here"), spec))
