"""Few shapes are compiled, and what fits none runs eagerly and is counted. Real trainings."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kopeck_trainer.compilation.fallbacks import Call, Fallbacks, difference
from tests.unit.trainer.local_workers import LocalJob
from tests.unit.trainer.on_ranks import on_ranks


def end_of(job: LocalJob, **fields: Any) -> Any:
    compiled = {"mode": "default", "numericsCheck": False}
    config = job.config(compile=compiled, checkpoint=None, **fields)
    assert job.run(config) == [0], job.workers[0].output
    return job.workers[0].termination()


def test_a_ragged_last_batch_causes_no_recompile(job: LocalJob) -> None:
    for attempt, drop_last in enumerate((False, True)):
        config = job.config(
            steps=6,  # 40 samples are two and a half batches
            globalBatchSize=16,
            compile={"mode": "default", "numericsCheck": False},
            data={"dropLast": drop_last},
            checkpoint=None,
        )
        assert job.run(config, attempt=attempt) == [0], job.workers[0].output
        end = job.workers[0].termination()
        assert (end["samples"], end["recompiles"], end["eagerFallbacks"]) == (6 * 16, 0, 0)


def test_a_stray_shape_is_one_eager_step_and_is_counted_with_what_differs(job: LocalJob) -> None:
    end = end_of(job, entrypoint="modes:build_stray", steps=10)  # two epochs
    assert end["recompiles"] == 0
    assert end["eagerFallbacks"] == (2 + 1) * 2  # blocks and loss, epochs
    told = [line for line in job.workers[0].output.splitlines() if "eagerly" in line]
    reason = "runs eagerly, it was not compiled for this:"
    assert told == [
        f"a block {reason} shape 1×6, compiled for 2×6",
        f"the loss {reason} shape 1×1, 1×6, 1×1, compiled for 2×1, 2×6, 2×1",
    ]


def test_samples_are_padded_to_lengths_that_are_all_compiled_before_the_first_step(
    job: LocalJob,
) -> None:
    end = end_of(job, entrypoint="modes:build_growing", steps=10, data={"padTo": [8, 4]})
    assert (end["recompiles"], end["eagerFallbacks"]) == (0, 0), job.workers[0].output


def test_a_sample_that_is_longer_than_all_lengths_is_refused(job: LocalJob) -> None:
    config = job.config(entrypoint="modes:build_growing", steps=10, data={"padTo": [7]})
    assert job.run(config) == [78]
    assert job.workers[0].termination()["message"] == (
        "spec.training.data.padTo: a sample of length 8 is longer than all of [7]; "
        "add 8, or cut the samples"
    )


@pytest.mark.parametrize(
    ("entrypoint", "block", "strictness", "told"),
    [
        ("modes:build_stray", None, {"onRecompile": "fail"}, "Detected recompile"),
        ("modes:build", "Breaking", {"onGraphBreak": "fail"}, "Unsupported"),
        ("modes:build", "Breaking", {"onGraphBreak": "fail", "mode": "auto"}, "Unsupported"),
        ("modes:build_breaking_loss", None, {"onGraphBreak": "fail"}, "Unsupported"),
    ],
)
def test_a_strict_job_fails_where_another_goes_on_uncompiled(
    job: LocalJob, entrypoint: str, block: str | None, strictness: dict[str, str], told: str
) -> None:
    compiled = {"mode": "default", "numericsCheck": False, **strictness}
    config = job.config(
        entrypoint=entrypoint, block=block, steps=10, compile=compiled, checkpoint=None
    )
    assert job.run(config) == [1], job.workers[0].output
    assert told in job.workers[0].termination()["message"]


class Doubling(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def fallbacks_of_calls() -> tuple[int, list[str]]:
    """Of a block that is compiled for training at shape 2×4, and then called otherwise."""
    said: list[str] = []
    fallbacks = Fallbacks(say=said.append)
    block = Doubling()
    fallbacks.watch([block], "a block")
    block.compile(dynamic=False, backend="eager")
    compiled_for = torch.ones(2, 4, requires_grad=True)
    block(compiled_for)
    torch.compiler.set_stance("eager_on_recompile")
    fallbacks.is_counting = True
    block(compiled_for)
    block(torch.ones(3, 4))
    block(torch.ones(3, 4))
    with torch.no_grad():
        block(compiled_for)
    return fallbacks.count, said


def test_every_eager_call_is_counted_and_each_difference_said_once(tmp_path: Path) -> None:
    [(count, said)] = on_ranks(1, fallbacks_of_calls, tmp_path)
    begin = "a block runs eagerly, it was not compiled for this: "
    assert count == 3
    assert said == [f"{begin}shape 3×4, compiled for 2×4", f"{begin}gradients off"]


def test_a_difference_is_named_by_what_no_compiled_call_had() -> None:
    compiled = {Call(((2, 4),), with_gradient=True, training=True)}
    evaluated = Call(((2, 4),), with_gradient=True, training=False)
    assert difference(evaluated, compiled) == "training off"
    scalar = Call(((),), with_gradient=True, training=True)
    assert difference(scalar, compiled) == "shape scalar, compiled for 2×4"
    [same] = compiled
    assert difference(same, compiled).startswith("something else than shape")
