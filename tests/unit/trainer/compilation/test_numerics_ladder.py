"""Compiled is compared with eager on the first batch, in real trainings."""

import pytest

from tests.unit.trainer.local_workers import LocalJob

COMPILED = {"mode": "default"}


def losses(job: LocalJob) -> list[str]:
    return [line.split()[3] for line in job.workers[0].output.splitlines() if "loss" in line]


def test_an_operator_whose_compiled_result_differs_is_run_eagerly(job: LocalJob) -> None:
    config = job.config(block="WrongCompiled", compile=COMPILED, checkpoint=None)
    assert job.run(config, workers=2) == [0, 0]
    end = job.workers[0].termination()
    assert end["compileMode"] == "off"
    assert end["numericsMismatch"].startswith("default differs from eager: loss ")
    assert end["samples"] == 4 * 8

    assert job.run(
        config | {"training": config["training"] | {"compile": {"mode": "off"}}},
        workers=2,
        attempt=1,
    ) == [0, 0]
    assert job.workers[0].termination()["loss"] == end["loss"]
    assert "numericsMismatch" not in job.workers[0].termination()


def test_auto_keeps_eager_where_the_compiled_result_differs(job: LocalJob) -> None:
    compiled = {"mode": "auto", "cache": str(job.folder / "cache")}
    config = job.config(block="WrongCompiled", steps=20, compile=compiled, checkpoint=None)
    for attempt in range(2):
        assert job.run(config, attempt=attempt) == [0]
        end = job.workers[0].termination()
        assert end["compileMode"] == "off"
        assert end["numericsMismatch"].startswith("default differs from eager: loss ")


@pytest.mark.parametrize("block", ["Dropping", "Normed"])
def test_dropout_and_running_statistics_do_not_disturb_the_comparison(
    job: LocalJob, block: str
) -> None:
    config = job.config(block=block, compile=COMPILED, checkpoint=None)
    assert job.run(config) == [0], job.workers[0].output
    end = job.workers[0].termination()
    assert end["compileMode"] == "default", job.workers[0].output
    assert "numericsMismatch" not in end

    if block == "Normed":  # what it computes depends on how many batches it has seen
        eager = config["training"] | {"compile": {"mode": "off"}}
        assert job.run(config | {"training": eager}, attempt=1) == [0]
        assert job.workers[0].termination()["loss"] == pytest.approx(end["loss"], rel=1e-4)
