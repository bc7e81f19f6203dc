"""The trainer's configuration: what a revision of the TrainingJob says, as the trainer reads it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.section import Section

Precision = Literal["bf16", "fp32", "fp8"]
CompileMode = Literal[
    "off", "default", "max-autotune-no-cudagraphs", "reduce-overhead", "max-autotune"
]
OnRecompile = Literal["eager", "fail", "allow"]
ShardingStrategy = Literal["auto", "full", "hybrid", "replicate"]
ActivationMode = Literal["none", "full", "selective", "budget"]


@dataclass(frozen=True, kw_only=True)
class CompileConfig:
    """How the blocks are compiled."""

    mode: CompileMode | Literal["auto"] = "auto"
    on_recompile: OnRecompile = "eager"
    """After warm-up. Default of the spec: `allow` where eager would keep more than the budget."""
    fails_on_graph_break: bool = False
    cache: Path | None = None
    """A folder that attempts share; None: each attempt compiles anew."""
    numerics_check: bool = True


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """How the data is read, and batches keep the few shapes that are compiled."""

    pad_to: tuple[int, ...] = ()
    """Lengths, ascending; empty: samples stay as they are."""
    drop_last: bool = False
    """Leave out what fills no global batch at the end of an epoch."""
    workers: int = 0
    """Processes of each rank that read ahead; 0: it reads itself, when it needs the data."""


@dataclass(frozen=True, kw_only=True)
class ShardingConfig:
    """How parameters are spread: over all ranks, inside each worker, or not at all.

    `auto` is `full`, and on one rank alone what is fastest and computes the same numbers.
    """

    strategy: ShardingStrategy = "auto"
    reshard_after_forward: bool | None = None
    """None: where memory is short."""


@dataclass(frozen=True, kw_only=True)
class ActivationsConfig:
    """What blocks compute again in their backward, to need less memory.

    Nothing, all, all but attention and narrow products, or what the compiler finds cheapest.
    """

    mode: ActivationMode = "none"
    memory_budget: float = 1.0
    """Share of what `none` keeps that `budget` may keep, 0–1."""


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """Where checkpoints go (a folder that all workers share), how often, and how many are kept."""

    path: Path
    every_steps: int | None = None
    every_seconds: int | None = None
    """Both None: only when asked, at the end of training, and before leaving on SIGTERM."""
    keep: int = 2
    in_background: bool = False
    """Training goes on while a copy is written."""


@dataclass(frozen=True, kw_only=True)
class ProfileConfig:
    """How often a few steps are traced, how many, and where the last trace is kept."""

    every_seconds: int | None = 600
    """None: never."""
    steps: int = 2
    keep: Path | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """`spec.training`. Exactly one of `steps` and `samples` says when training ends."""

    global_batch_size: int
    """Samples per optimizer step, over all ranks."""
    micro_batch_size: int
    """Samples per forward of one rank."""
    steps: int | None = None
    samples: int | None = None
    precision: Precision = "bf16"
    seed: int = 0
    max_grad_norm: float | None = None
    fails_on_nonfinite_loss: bool = False
    """It ends the attempt; otherwise it is told, and training goes on."""
    compile: CompileConfig = CompileConfig()
    data: DataConfig = DataConfig()
    sharding: ShardingConfig = ShardingConfig()
    activations: ActivationsConfig = ActivationsConfig()
    checkpoint: CheckpointConfig | None = None
    profile: ProfileConfig = ProfileConfig()


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """What the builder is handed, and what the launcher starts: `entrypoint` or `command`."""

    entrypoint: str | None = None
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    """`spec.parameters`, free-form."""
    training: TrainingConfig | None = None
    """None only with `command`."""


def read_config(path: Path) -> TrainConfig:
    """The configuration stored at `path`. Raises ConfigurationError."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            "KOPECK_CONFIG",
            f"{path} cannot be read ({error})",
            "name a readable JSON file with the trainer's configuration",
        ) from None
    return parse_config(content)


def parse_config(content: object) -> TrainConfig:
    """The configuration with its defaults. Raises ConfigurationError."""
    spec = Section("spec", content)
    training = spec.section("training")
    config = TrainConfig(
        entrypoint=spec.text("entrypoint"),
        command=spec.texts("command"),
        args=spec.texts("args"),
        parameters=spec.mapping("parameters"),
        training=_training(training) if training else None,
    )
    spec.refuse_unknown()
    _refuse_ambiguous_program(config)
    return config


def _refuse_ambiguous_program(config: TrainConfig) -> None:
    if (config.entrypoint is None) == (not config.command):
        raise ConfigurationError(
            "spec.entrypoint",
            "exactly one of entrypoint and command is needed",
            "write entrypoint for a builder, command for a program of your own",
        )
    if config.entrypoint and config.training is None:
        raise ConfigurationError(
            "spec.training",
            "an entrypoint has no training settings",
            "write steps or samples, globalBatchSize and microBatchSize",
        )


def _training(section: Section) -> TrainingConfig:
    activations = _activations(section.section("activations") or _empty("activations"))
    compile_section = section.section("compile") or _empty("compile")
    data = section.section("data")
    sharding = section.section("sharding")
    checkpoint = section.section("checkpoint")
    profile = section.section("profile")
    losses: tuple[Literal["report", "fail"], ...] = ("report", "fail")
    training = TrainingConfig(
        global_batch_size=section.required("globalBatchSize", section.count("globalBatchSize")),
        micro_batch_size=section.required("microBatchSize", section.count("microBatchSize")),
        steps=section.count("steps"),
        samples=section.count("samples"),
        precision=section.word("precision", get_args(Precision), default="bf16"),
        seed=section.integer("seed") or 0,
        max_grad_norm=section.positive("maxGradNorm"),
        fails_on_nonfinite_loss=section.word("onNonfiniteLoss", losses, default="report") == "fail",
        compile=_compile(compile_section, activations),
        data=_data(data) if data else DataConfig(),
        sharding=_sharding(sharding) if sharding else ShardingConfig(),
        activations=activations,
        checkpoint=_checkpoint(checkpoint) if checkpoint else None,
        profile=_profile(profile) if profile else ProfileConfig(),
    )
    section.refuse_unknown()
    if (training.steps is None) == (training.samples is None):
        raise ConfigurationError(
            "spec.training.steps",
            "exactly one of steps and samples is needed",
            "write the one that ends the training",
        )
    return training


def _empty(name: str) -> Section:
    return Section(f"spec.training.{name}", {})


def _activations(section: Section) -> ActivationsConfig:
    mode = section.word("mode", get_args(ActivationMode), default="none")
    budget = section.share("memoryBudget")
    section.refuse_unknown()
    if (budget is not None) != (mode == "budget"):
        raise ConfigurationError(
            "spec.training.activations.memoryBudget",
            f"it goes with mode budget alone, and the mode is {mode}"
            if budget is not None
            else "mode budget needs one",
            "write both or none of them",
        )
    return ActivationsConfig(mode=mode, memory_budget=1.0 if budget is None else budget)


def _compile(section: Section, activations: ActivationsConfig) -> CompileConfig:
    has_budget = activations.mode == "budget"
    cache = section.text("cache")
    breaks: tuple[Literal["allow", "fail"], ...] = ("allow", "fail")
    config = CompileConfig(
        mode=section.word("mode", ("auto", *get_args(CompileMode)), default="auto"),
        on_recompile=section.word(
            "onRecompile", get_args(OnRecompile), default="allow" if has_budget else "eager"
        ),
        fails_on_graph_break=section.word("onGraphBreak", breaks, default="allow") == "fail",
        cache=Path(cache) if cache else None,
        numerics_check=section.flag("numericsCheck", default=True),
    )
    section.refuse_unknown()
    if has_budget and config.mode == "off":
        raise ConfigurationError(
            "spec.training.activations.mode",
            "budget is the compiler's, and spec.training.compile.mode is off",
            "write full or selective, or another compile mode",
        )
    return config


def _data(section: Section) -> DataConfig:
    config = DataConfig(
        pad_to=tuple(sorted(section.counts("padTo"))),
        drop_last=section.flag("dropLast", default=False),
        workers=section.natural("workers") or 0,
    )
    section.refuse_unknown()
    return config


def _sharding(section: Section) -> ShardingConfig:
    strategies: tuple[ShardingStrategy, ...] = ("auto", "full", "hybrid", "replicate")
    if section.flag("cpuOffload", default=False):
        raise ConfigurationError(
            "spec.training.sharding.cpuOffload",
            "every step would wait for weights and gradients to cross PCIe, so it is not built",
            "write false, and spare memory by spec.training.activations.mode or more ranks",
        )
    sharding = ShardingConfig(
        strategy=section.word("strategy", strategies, default="auto"),
        reshard_after_forward=section.flag("reshardAfterForward", default=None),
    )
    section.refuse_unknown()
    return sharding


def _checkpoint(section: Section) -> CheckpointConfig:
    checkpoint = CheckpointConfig(
        path=Path(section.required("path", section.text("path"))),
        every_steps=section.count("everySteps"),
        every_seconds=section.count("everySeconds"),
        keep=section.count("keep") or CheckpointConfig.keep,
        in_background=section.flag("async", default=False),
    )
    section.refuse_unknown()
    return checkpoint


def _profile(section: Section) -> ProfileConfig:
    asked = section.integer("everySeconds")
    every_seconds = ProfileConfig.every_seconds if asked is None else asked
    keep = section.text("keep")
    if every_seconds is not None and every_seconds < 0:
        raise ConfigurationError(
            "spec.training.profile.everySeconds",
            f"{every_seconds} cannot be used",
            "write 60 or more, or 0 for no windows",
        )
    profile = ProfileConfig(
        every_seconds=every_seconds or None,
        steps=section.count("steps") or ProfileConfig.steps,
        keep=Path(keep) if keep else None,
    )
    section.refuse_unknown()
    return profile
