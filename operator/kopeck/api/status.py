"""What a TrainingJob's status holds. Counts and intents in it are written before the act."""

from typing import Literal

from pydantic import Field

from kopeck.api.spec import Spec

MONEY_PATTERN = r"^-?[0-9]+(\.[0-9]+)?$"

Phase = Literal["Pending", "Starting", "Running", "Restarting", "Complete", "Failed"]
RestartReason = Literal["Failure", "PodLost", "Disrupted", "Resized", "NewRevision"]


class Condition(Spec):
    """A condition of the standard shape."""

    type: str = Field(max_length=316, description="Such as Running, Complete, PriceKnown.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(max_length=1024, description="One word that says why.")
    message: str = Field(max_length=32_768, description="A sentence that says what to do.")
    last_transition_time: str = Field(description="When status last changed; RFC 3339, UTC.")
    observed_generation: int | None = Field(None, description="The spec's generation it is of.")


class Restarts(Spec):
    """How often a new attempt began."""

    failures: int = Field(0, ge=0, description="Those counted against backoffLimit.")
    total: int = Field(0, ge=0, description="All of them.")


class Failure(Spec):
    """The first failure of an attempt; its peers die of the consequence."""

    attempt: int = Field(ge=0, description="The attempt that it ended.")
    worker: int = Field(ge=0, description="The worker that failed first.")
    rank: int | None = Field(None, ge=0, description="The rank that failed first, if known.")
    exit_code: int | None = Field(None, description="Of the first failed rank.")
    signal: str | None = Field(None, description="That ended it, such as SIGKILL.")
    reason: str = Field(description="One word, such as Signal, Configuration, OOMKilled.")
    message: str = Field(description="One sentence.")
    finished_at: str | None = Field(None, description="RFC 3339, UTC.")


class EffectiveNccl(Spec):
    """What the attempt's pods get for NCCL beside what the spec says."""

    platform: str | None = Field(
        None, description="Of the nodes that the pods may get, if it is known and only one."
    )
    environment: dict[str, str] = Field(default={}, description="Variables of the trainer.")
    resources: dict[str, str] = Field(default={}, description="Requested by the trainer.")
    config_map: str | None = Field(None, description="The job's copy of the files.")
    files: list[Literal["topology.xml", "nccl.conf"]] = Field(
        default=[], max_length=2, description="Keys of it that the pods mount."
    )


class Effective(Spec):
    """What the pods are rendered from."""

    revision: str = Field(description="Hash of the part of the spec that changes training.")
    workers: int = Field(ge=1, description="Pods of this attempt.")
    populated: bool = Field(
        default=False,
        description="All pods of this attempt have existed: a missing one is lost, not to come.",
    )
    created_at: str | None = Field(
        None, description="When the attempt's pods were first asked for; RFC 3339, UTC."
    )
    nccl: EffectiveNccl | None = Field(
        None, description="Decided once for each attempt with GPUs, by the nodes of that moment."
    )


class TrainingStatus(Spec):
    """The last reported figures of training."""

    step: int | None = Field(None, ge=0, description="Optimizer steps that are kept.")
    samples: int | None = Field(None, ge=0, description="Samples that are kept: step × batch.")
    samples_per_second: float | None = Field(None, description="Of the whole job.")
    loss: float | None = Field(None, description="Mean of the last step.")
    mfu: float | None = Field(
        None, description="Model FLOPs utilisation, 0-1, where the GPU's peak is known."
    )
    checkpoint_step: int | None = Field(None, ge=0, description="The last complete checkpoint.")
    compile_mode: str | None = Field(None, description="That is in use.")
    compile_decision: str | None = Field(
        None, max_length=4096, description="Why auto chose that mode, with its numbers."
    )
    compile_seconds: float | None = Field(None, description="Of the slowest rank, this attempt.")
    graph_breaks: int | None = Field(None, ge=0, description="This attempt.")
    recompiles: int | None = Field(None, ge=0, description="After warm-up, this attempt.")
    eager_fallbacks: int | None = Field(
        None, ge=0, description="Calls that ran eagerly after warm-up, this attempt."
    )
    nonfinite_losses: int | None = Field(
        None,
        ge=0,
        description="Steps whose loss, or norm of gradients to be clipped, was NaN or infinite, "
        "this attempt.",
    )
    loss_spikes: int | None = Field(
        None, ge=0, description="Steps whose loss was far above those before, this attempt."
    )
    reported_at: str | None = Field(None, description="RFC 3339, UTC.")


class CheckpointRequest(Spec):
    """The last checkpoint that a user asked for."""

    name: str = Field(max_length=253, description="The annotation's value.")
    state: Literal["Requested", "Saved", "Refused"] = Field(description="What became of it.")
    step: int | None = Field(
        None, ge=0, description="A complete checkpoint that is no older than the request."
    )
    message: str | None = Field(None, max_length=1024, description="Why it is refused.")


class DollarsPerSample(Spec):
    """Unit costs, in US dollars."""

    all_in: str | None = Field(
        None, pattern=MONEY_PATTERN, description="Spent so far over the samples kept."
    )
    marginal: str | None = Field(
        None, pattern=MONEY_PATTERN, description="Current hourly rate over current speed."
    )


class CostStatus(Spec):
    """Compute money of this job, in US dollars. Absent is unknown, never zero."""

    hourly_rate: str | None = Field(None, pattern=MONEY_PATTERN, description="Of all pods now.")
    spent: str | None = Field(None, pattern=MONEY_PATTERN, description="By all attempts.")
    spent_at_least: str | None = Field(
        None, pattern=MONEY_PATTERN, description="The priced part, where a price is unknown."
    )
    uncertain: str | None = Field(
        None, pattern=MONEY_PATTERN, description="The part of unknown ends, not in spent."
    )
    dollars_per_sample: DollarsPerSample | None = Field(None, description="Unit costs.")
    price_source: str | None = Field(None, description="The price book's id.")
    as_of: str | None = Field(None, description="When spent was reckoned; RFC 3339, UTC.")


class Display(Spec):
    """What `kubectl get` shows; printer columns cannot compute."""

    workers: str | None = Field(None, description="Ready/desired.")
    step: str | None = Field(None, description="Done/planned.")
    cost_per_1k_samples: str | None = Field(
        None, alias="costPer1kSamples", description="Dollars per 1000 samples, all in."
    )
    spent: str | None = Field(None, description="Dollars.")


class TrainingJobStatus(Spec):
    """The observed state of a TrainingJob."""

    phase: Phase = Field("Pending", description="Where the job is in its life.")
    conditions: list[Condition] = Field(default=[], max_length=16, description="Standard shape.")
    observed_generation: int = Field(0, ge=0, description="The generation that was acted on.")
    start_time: str | None = Field(None, description="When all workers first ran.")
    completion_time: str | None = Field(None, description="When it completed or failed.")
    replicas: int = Field(0, ge=0, description="Pods that exist.")
    ready_replicas: int = Field(0, ge=0, description="Pods whose trainer runs.")
    selector: str = Field("", description="Of the pods, for autoscalers.")
    attempt: int = Field(0, ge=0, description="The current set of pods.")
    restarts: Restarts = Field(Restarts(), description="How often a new attempt began.")
    restart_reason: RestartReason | None = Field(None, description="Of the current attempt.")
    retry_at: str | None = Field(None, description="The attempt's pods wait until then.")
    last_failure: Failure | None = Field(None, description="The last counted failure.")
    effective: Effective | None = Field(None, description="What the pods are rendered from.")
    training: TrainingStatus | None = Field(None, description="Figures of training.")
    checkpoint_request: CheckpointRequest | None = Field(
        None, description="The last one, by the annotation kopeck.dev/checkpoint-request."
    )
    cost: CostStatus | None = Field(None, description="Figures of money.")
    display: Display | None = Field(None, description="For kubectl get.")
