"""A tuning as JSON and as a patch."""

import json

from kopeck.api.trainingjob import parse_spec
from kopeck.tuning.document import as_document, patch_of
from tests.builders import a_job
from tests.merge_patch import merge_patched
from tests.unit.tuning.builders import a_point, measured, out_of_memory


def test_each_point_says_what_is_known_and_nothing_else() -> None:
    outcomes = [
        measured(2.0, 10, "0.0000125", a_point(1, 4, "budget", 0.5)),
        measured(3.0, 11, "0.0000188", a_point(2, 2)),
        out_of_memory(a_point(4, 1)),
    ]
    document = json.loads(json.dumps(as_document("job", outcomes)))
    assert document == {
        "v": 1,
        "job": "job",
        "points": [
            {
                "microBatchSize": 1,
                "accumulation": 4,
                "activations": {"mode": "budget", "memoryBudget": 0.5},
                "outcome": "measured",
                "stepSeconds": 2.0,
                "peakBytes": 10,
                "memory": "device",
                "dollarsPerSample": "0.0000125",
                "isOnFront": True,
            },
            {
                "microBatchSize": 2,
                "accumulation": 2,
                "activations": {"mode": "none"},
                "outcome": "measured",
                "stepSeconds": 3.0,
                "peakBytes": 11,
                "memory": "device",
                "dollarsPerSample": "0.0000188",
                "isOnFront": False,
            },
            {
                "microBatchSize": 4,
                "accumulation": 1,
                "activations": {"mode": "none"},
                "outcome": "out-of-memory",
                "reason": "out of memory",
                "isOnFront": False,
            },
        ],
        "best": {
            "microBatchSize": 1,
            "accumulation": 4,
            "activations": {"mode": "budget", "memoryBudget": 0.5},
        },
        "patch": {
            "spec": {
                "training": {
                    "microBatchSize": 1,
                    "activations": {"mode": "budget", "memoryBudget": 0.5},
                }
            }
        },
    }


def test_unknown_dollars_and_a_missing_best_point_have_no_key() -> None:
    document = as_document("job", [measured()])
    assert "dollarsPerSample" not in document["points"][0]
    assert as_document("job", [out_of_memory(a_point())]).keys() == {"v", "job", "points"}


def test_the_patched_job_is_what_was_measured_and_keeps_the_rest() -> None:
    for own in ({}, {"activations": {"mode": "budget", "memoryBudget": 0.25}}):
        job = a_job(training=own)
        for point in (a_point(8, 1, "full"), a_point(8, 1, "budget", 0.5)):
            training = parse_spec(merge_patched(job, patch_of(point))["spec"]).training
            assert training is not None
            assert (training.micro_batch_size, training.steps) == (8, 20)
            assert training.activations == point.activations
