"""The TrainingJob: the whole spec, and the rules that span its parts."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, ValidationError

from kopeck.api.errors import SpecError, first_wrong_field
from kopeck.api.names import JOB_NAME_PATTERN, MAX_JOB_NAME_LENGTH
from kopeck.api.nccl import NcclSpec
from kopeck.api.run_policy import RunPolicySpec
from kopeck.api.spec import Rule, Spec
from kopeck.api.telemetry import TelemetrySpec
from kopeck.api.training import TrainingSpec
from kopeck.api.workers import WorkersSpec

_PROCESSES = (
    "(has(self.workers.processesPerWorker) ? self.workers.processesPerWorker"
    " : self.workers.gpusPerWorker > 0 ? self.workers.gpusPerWorker : 1)"
)
_CLAIMS = (
    "(has(self.workers.template) && has(self.workers.template.spec)"
    " && has(self.workers.template.spec.resourceClaims)"
    " ? self.workers.template.spec.resourceClaims.map(claim, claim.name) : [])"
)
_AT_ONCE = f"(self.training.microBatchSize * self.workers.replicas * {_PROCESSES})"

NAME_RULES = (
    Rule(
        f"self.metadata.name.size() <= {MAX_JOB_NAME_LENGTH}",
        f"metadata.name is too long for the names of its pods;"
        f" use at most {MAX_JOB_NAME_LENGTH} characters",
    ),
    Rule(
        f"self.metadata.name.matches('{JOB_NAME_PATTERN}')",
        "metadata.name must begin with a letter and hold lower-case letters, digits and '-' only",
    ),
)


class TrainingJobSpec(Spec):
    """What a user asks for: an image, what to run in it, on how many workers."""

    image: str = Field(min_length=1, max_length=1024, description="The training container's image.")
    image_pull_policy: str | None = Field(
        None,
        json_schema_extra={"enum": ["Always", "IfNotPresent", "Never"]},
        description="As of a container.",
    )
    entrypoint: str | None = Field(
        None,
        max_length=512,
        pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$",
        description="The builder that the trainer calls, as package.module:function.",
    )
    command: list[str] | None = Field(
        None,
        min_length=1,
        max_length=256,
        description="Your own program, started once per rank with torchrun's environment.",
    )
    args: list[str] | None = Field(None, max_length=256, description="Arguments of command.")
    parameters: dict[str, Any] = Field(default={}, description="Handed to the builder as it is.")
    workers: WorkersSpec = Field(description="The pods.")
    training: TrainingSpec | None = Field(None, description="What the trainer does.")
    nccl: NcclSpec = Field(NcclSpec(), description="What NCCL is told.")
    telemetry: TelemetrySpec = Field(TelemetrySpec(), description="How GPUs are read.")
    run_policy: RunPolicySpec = Field(RunPolicySpec(), description="Retries and deadlines.")

    cel_rules: ClassVar = (
        Rule(
            "!has(self.telemetry) || !has(self.telemetry.gpuClaim)"
            f" || self.telemetry.gpuClaim in {_CLAIMS}",
            "telemetry.gpuClaim is no claim of workers.template.spec.resourceClaims; name one",
        ),
        Rule(
            "has(self.entrypoint) != has(self.command)",
            "set exactly one of entrypoint (a builder, as package.module:function)"
            " and command (your own program)",
        ),
        Rule("!has(self.args) || has(self.command)", "args need a command; set command, or remove"),
        Rule("!has(self.entrypoint) || has(self.training)", "entrypoint needs training; set it"),
        Rule(
            f"!has(self.training) || self.training.globalBatchSize % {_AT_ONCE} == 0",
            "globalBatchSize is no multiple of microBatchSize × ranks; use one",
            "'globalBatchSize %d is no multiple of microBatchSize × ranks (%d × %d); use %d'"
            ".format([self.training.globalBatchSize, self.training.microBatchSize, "
            f"self.workers.replicas * {_PROCESSES}, "
            f"(self.training.globalBatchSize / {_AT_ONCE} + 1) * {_AT_ONCE}])",
        ),
    )


def parse_spec(spec: Mapping[str, Any]) -> TrainingJobSpec:
    """The typed spec of a TrainingJob's `spec`. Raises SpecError naming the first wrong field."""
    try:
        return TrainingJobSpec.model_validate(spec)
    except ValidationError as error:
        field, wrong = first_wrong_field(error)
        instead = "see kubectl explain trainingjob.spec"
        raise SpecError(f"spec.{field}".rstrip("."), wrong, instead) from None
