"""The short training that measures a point."""

from kopeck.api.training import ProfileSpec
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.tuning.points import Point, tunable_training

UNMEASURED_STEPS = 3
"""Two that compile, also where the second micro-batch of a step needs a graph of its own, and the
one that shows that nothing is compiled any more."""


def trial_of(spec: TrainingJobSpec, point: Point, measured_steps: int) -> TrainingJobSpec:
    """The job, as `point` says and `measured_steps` long after warm-up.

    It saves and traces nothing and tries no compile modes: `auto` is `default`. Compiled is not
    compared with eager, whose memory would be the peak.
    """
    own = tunable_training(spec)
    mode = "default" if own.compile.mode == "auto" else own.compile.mode
    training = own.model_copy(
        update={
            "micro_batch_size": point.micro_batch,
            "activations": point.activations,
            "steps": UNMEASURED_STEPS + measured_steps,
            "samples": None,
            "checkpoint": None,
            "profile": ProfileSpec(every_seconds=0),
            "compile": own.compile.model_copy(
                update={"mode": mode, "cache": None, "numerics_check": False}
            ),
        }
    )
    return spec.model_copy(update={"training": training})
