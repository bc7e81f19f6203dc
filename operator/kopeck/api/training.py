"""What training does: its length, batch, precision, compilation, data and checkpoints."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kopeck.api.spec import Rule, Spec

_INT32_MAX = 2**31 - 1


class CompileSpec(Spec):
    """How the model's blocks are compiled."""

    mode: Literal[
        "auto", "off", "default", "max-autotune-no-cudagraphs", "reduce-overhead", "max-autotune"
    ] = Field(
        "auto",
        description="torch.compile's mode; `off` trains eagerly, `auto` measures which is cheapest"
        " for the rest of the run.",
    )
    on_recompile: Literal["eager", "fail", "allow"] | None = Field(
        None,
        description="What a call does after warm-up that nothing compiled fits: run eagerly and be"
        " counted, fail, or be compiled. Default: `eager`, with activations.mode `budget` `allow`.",
    )
    on_graph_break: Literal["allow", "fail"] = Field(
        "allow", description="`fail` ends the job at the first one; else they are counted."
    )
    cache: str | None = Field(
        None,
        min_length=1,
        max_length=1024,
        pattern="^/",
        description="A folder that attempts share, such as a mounted claim. It keeps what was"
        " compiled and what `auto` decided. What is in it is executed: one for each owner.",
    )
    numerics_check: bool = Field(
        default=True, description="Compare compiled with eager on the first batch."
    )


class DataSpec(Spec):
    """How the data is read, and batches keep the few shapes that are compiled."""

    pad_to: list[Annotated[int, Field(ge=1, le=_INT32_MAX)]] = Field(
        default=[],
        max_length=64,
        description="Samples are padded to the smallest of these lengths that holds the longest"
        " of their micro-batch.",
    )
    drop_last: bool = Field(
        default=False,
        description="Leave out the samples of each epoch that fill no global batch. Otherwise"
        " the batch is filled from the next epoch.",
    )
    workers: int | None = Field(
        None,
        ge=0,
        le=1000,
        description="Processes of each rank that read samples ahead of the steps. Default: 0, the"
        " rank reads them itself, when it needs them.",
    )


class ShardingSpec(Spec):
    """How the parameters of the model are spread over the ranks."""

    strategy: Literal["auto", "full", "hybrid", "replicate"] = Field(
        "auto",
        description="`full`: over all ranks. `hybrid`: inside each worker, replicated across."
        " `replicate`: each rank has all. `auto`: full, on one rank alone what is fastest and"
        " computes the same.",
    )
    reshard_after_forward: bool | None = Field(
        None,
        description="Whether a block's gathered weights are freed until its backward. Default: yes"
        " if all of them would take more than a tenth of a device's memory.",
    )
    cpu_offload: bool = Field(
        default=False, description="Only `false`: weights stay on the devices."
    )

    cel_rules: ClassVar = (
        Rule(
            "!has(self.cpuOffload) || !self.cpuOffload",
            "cpuOffload is not built, every step would wait for weights and gradients to cross"
            " PCIe; write false, and spare memory by activations.mode or more ranks",
        ),
    )


class ActivationsSpec(Spec):
    """What blocks compute again in their backward, to need less memory."""

    mode: Literal["none", "full", "selective", "budget"] = Field(
        "none",
        description="`full`: all of a block. `selective`: all but attention and the products that"
        " are not wider than what they sum over. `budget`: what the compiler finds cheapest to keep"
        " memoryBudget; eager ignores it and keeps all.",
    )
    memory_budget: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of what `none` keeps that mode `budget` may keep: 0 is as `full`.",
    )

    cel_rules: ClassVar = (
        Rule(
            "has(self.memoryBudget) == (self.mode == 'budget')",
            "memoryBudget and mode budget go together; write both or none of them",
        ),
    )


class CheckpointSpec(Spec):
    """Where and how often training is saved."""

    path: str = Field(
        min_length=1,
        max_length=1024,
        pattern="^/",
        description="A folder that all workers share, such as a mounted claim.",
    )
    every_steps: int | None = Field(
        None, ge=1, le=_INT32_MAX, description="Steps between checkpoints."
    )
    every_seconds: int | None = Field(
        None, ge=1, le=_INT32_MAX, description="Seconds between checkpoints, besides everySteps."
    )
    keep: int = Field(2, ge=1, le=1000, description="How many complete ones are kept.")
    async_: bool = Field(
        default=False,
        alias="async",
        description="Training goes on while a copy in the host's memory is written.",
    )

    cel_rules: ClassVar = (
        Rule(
            "has(self.everySteps) || has(self.everySeconds)",
            "set everySteps, everySeconds or both: a failure loses the work since the last one",
        ),
    )


class ProfileSpec(Spec):
    """Trace windows: a few steps of all ranks, measured for how communication is hidden."""

    every_seconds: int = Field(
        600,
        ge=0,
        le=_INT32_MAX,
        description="From the begin of one window to the next one's, and longer where a window"
        " costs more than half a percent of it. The first begins a minute after the warm-up."
        " 0: none.",
    )
    steps: int = Field(
        2, ge=1, le=10, description="Steps that are measured, after one that warms up."
    )
    keep: str | None = Field(
        None,
        min_length=1,
        max_length=1024,
        pattern="^/",
        description="A folder, such as a mounted claim, where the trace of each rank's last window"
        " is kept, for `kopeck trace`. Default: traces are deleted once they are measured.",
    )

    cel_rules: ClassVar = (
        Rule(
            "self.everySeconds == 0 || self.everySeconds >= 60",
            "windows are at least 60 seconds apart; write 60 or more, or 0 for none",
        ),
    )


class TrainingSpec(Spec):
    """What the trainer does. The global batch is kept whatever the number of workers."""

    steps: int | None = Field(None, ge=1, le=_INT32_MAX, description="Optimizer steps to train.")
    samples: int | None = Field(
        None, ge=1, description="Samples to train, in place of steps; a whole number of batches."
    )
    global_batch_size: int = Field(
        ge=1, le=_INT32_MAX, description="Samples of one optimizer step, over all ranks."
    )
    micro_batch_size: int = Field(
        ge=1, le=_INT32_MAX, description="Samples of one forward pass of one rank."
    )
    precision: Literal["bf16", "fp32", "fp8"] = Field(
        "bf16",
        description="Of compute; masters and reductions are fp32. `fp8`: bf16, with the matrix"
        " products of the blocks in 8 bits, for GPUs of compute capability 8.9 or newer.",
    )
    seed: int = Field(0, ge=0, le=_INT32_MAX, description="Of initial weights and data order.")
    max_grad_norm: float | None = Field(
        None, gt=0, description="Gradients are clipped to this norm. Default: not clipped."
    )
    on_nonfinite_loss: Literal["report", "fail"] | None = Field(
        None,
        description="What a loss that is NaN or infinite does: be reported, or `fail`: end the"
        " attempt, unsaved; the next one goes on from the last checkpoint. Default: `report`.",
    )
    compile: CompileSpec = Field(CompileSpec(), description="How blocks are compiled.")
    data: DataSpec = Field(DataSpec(), description="How the data is read.")
    sharding: ShardingSpec | None = Field(
        None, description="How parameters are spread. Default: strategy auto."
    )
    activations: ActivationsSpec | None = Field(
        None, description="What is kept for the backward. Default: mode none."
    )
    checkpoint: CheckpointSpec | None = Field(
        None, description="Without it nothing is saved: a restart begins at step 0."
    )
    profile: ProfileSpec | None = Field(
        None, description="How often steps are traced. Default: two steps, every ten minutes."
    )

    cel_rules: ClassVar = (
        Rule(
            "has(self.steps) != has(self.samples)",
            "set exactly one of steps and samples: it says when training ends",
        ),
        Rule(
            "!has(self.samples) || self.samples % self.globalBatchSize == 0",
            "samples is no multiple of globalBatchSize; round it up to one",
            "'samples %d is no multiple of globalBatchSize; use %d'.format([self.samples,"
            " (self.samples / self.globalBatchSize + 1) * self.globalBatchSize])",
        ),
        Rule(
            "!has(self.activations) || self.activations.mode != 'budget'"
            " || !has(self.compile) || self.compile.mode != 'off'",
            "activations.mode budget is the compiler's, and compile.mode is off; write full or"
            " selective, or another compile mode",
        ),
    )

    @property
    def planned_samples(self) -> int:
        """Samples at the end of training."""
        return self.samples or (self.steps or 0) * self.global_batch_size
