"""Every metric of kopeck. Dashboards, alerts, gate and docs are made from here.

A metric that nothing exports yet does not belong here.
"""

from dataclasses import dataclass
from typing import Literal

MetricType = Literal["counter", "gauge", "histogram", "info"]
ExportedBy = Literal["worker", "operator"]

# Namespace and pod of a worker come from the scrape. `job` is Prometheus's own label.
WORKER_LABELS = ("training_job", "worker")
JOB_LABELS = ("namespace", "training_job")

PHASES = ("startup", "compile", "warmup", "compute", "data_wait", "checkpoint", "idle")
"""What a rank spends its wall time on; each second belongs to exactly one."""

STEP_PARTS = ("forward_backward", "optimizer", "data_wait", "checkpoint", "other")
"""What the time of an optimizer step goes into; each second belongs to exactly one."""

RECOMPILE_REASONS = (
    *("shape", "dtype", "stride", "grad_mode", "global_state", "object_identity"),
    *("type", "value", "new_code", "other"),
)
"""Why code is compiled after the warm-up; the last is for all that is none of the others."""

WINDOW_FAULTS = ("profiler", "analyser", "hung", "unanswered", "not_kept")
"""Why a rank has no figures of a trace window: torch's profiler failed; its trace could not be
measured, or not in time; not all ranks told of theirs, so that waiting is unknown; or only the
trace could not be kept."""

STEP_SECONDS_BUCKETS = (
    *(0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 2.5),
    *(5.0, 10.0, 20.0, 40.0, 80.0, 150.0, 300.0, 600.0),
)
"""Upper bounds in seconds, 10 ms to 10 min by factors of about 2; +Inf follows."""

STEP_JITTER_SECONDS_BUCKETS = (
    *(0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05),
    *(0.1, 0.2, 0.5, 1.0, 5.0),
)
"""Upper bounds in seconds; +Inf follows."""

GPU_LABELS = (*WORKER_LABELS, "gpu", "uuid")
"""`gpu` is the index in the training container, `uuid` NVIDIA's."""

RECONCILE_SECONDS_BUCKETS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds in seconds; +Inf follows."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric as Prometheus stores it, so with `_total` of a counter and `_info` of an info.

    `unit` is empty for a number without one. `buckets` are a histogram's upper bounds.
    """

    name: str
    type: MetricType
    exported_by: ExportedBy
    help: str
    unit: str = ""
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


STEPS_TOTAL = Metric(
    name="kopeck_steps_total",
    type="counter",
    unit="steps",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Optimizer steps since the worker started. Its ranks step together: a step counts once.",
)
SAMPLES_TOTAL = Metric(
    name="kopeck_samples_total",
    type="counter",
    unit="samples",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Samples that the worker's ranks consumed since it started, lost work included. "
    "For rates; a job's total is kopeck_job_samples_kept.",
)
TOKENS_TOTAL = Metric(
    name="kopeck_tokens_total",
    type="counter",
    unit="tokens",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Tokens that the worker's ranks consumed since it started. "
    "Absent where the program does not count them.",
)
STEP_SECONDS = Metric(
    name="kopeck_step_seconds",
    type="histogram",
    unit="seconds",
    labels=WORKER_LABELS,
    exported_by="worker",
    buckets=STEP_SECONDS_BUCKETS,
    help="Duration of optimizer steps, seen by the worker's first rank. "
    "For dashboards: a quantile is exact to a factor of two.",
)
STEP_JITTER_SECONDS = Metric(
    name="kopeck_step_jitter_seconds",
    type="histogram",
    unit="seconds",
    labels=WORKER_LABELS,
    exported_by="worker",
    buckets=STEP_JITTER_SECONDS_BUCKETS,
    help="By how much optimizer steps took longer than the median of the 20 before them, seen by "
    "the worker's first rank, after the warm-up; 0 for those that did not. Unlike quantiles its "
    "buckets add up over time: p99 is within 15 ms of p50 where 99 % are in the bucket 0.015. "
    "Absent where the program does not report it.",
)
STEP_MEDIAN_SECONDS = Metric(
    name="kopeck_step_median_seconds",
    type="gauge",
    unit="seconds",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Median of the last 20 optimizer steps after the warm-up, seen by the worker's first "
    "rank. Absent before, and when reports or steps have stopped.",
)
LOSS = Metric(
    name="kopeck_loss",
    type="gauge",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Mean loss of the last step over all ranks of the job. "
    "Absent until the first step, when it is not finite, and when reports have stopped.",
)
SAMPLES_PER_SECOND = Metric(
    name="kopeck_samples_per_second",
    type="gauge",
    unit="samples_per_second",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Samples per second over recent steps, summed over the worker's ranks. Absent when a "
    "rank's rate is unknown, and when its reports or its steps have stopped: no step has ended for "
    "10 s and for ten times the mean of the last 20.",
)
MFU_RATIO = Metric(
    name="kopeck_mfu_ratio",
    type="gauge",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Model FLOPs utilization over recent steps, 0-1, the mean over the worker's ranks: what "
    "the model needs (forward counted once, times 3; attention as non-causal; no recomputation) / "
    "the dense bf16 peak of the GPU. Absent where the peak is unknown, in fp32, and when reports "
    "or steps have stopped.",
)
PHASE_SECONDS_TOTAL = Metric(
    name="kopeck_phase_seconds_total",
    type="counter",
    unit="seconds",
    labels=(*WORKER_LABELS, "phase"),
    exported_by="worker",
    help="Wall time of the worker by phase, the mean over its ranks: the phases of a worker add "
    "up to its wall time since the training container started, a sum over workers is "
    "worker-seconds. Startup includes what comes before the program can report. "
    "Idle includes what follows once the program has ended, compile a wait for the compile cache "
    "to be kept. Compute includes exposed communication. A wait for data counts as far as the "
    "device had nothing to do, which on GPUs is known two steps later.",
)
STEP_PART_SECONDS_TOTAL = Metric(
    name="kopeck_step_part_seconds_total",
    type="counter",
    unit="seconds",
    labels=(*WORKER_LABELS, "part"),
    exported_by="worker",
    help="Time of the worker's steps after the warm-up by part, the mean over its ranks; the parts "
    "add up. On GPUs by the device's own clock: a wait of the host counts as far as the device had "
    "nothing to do. Waiting for other ranks is in forward_backward; checkpoint is the wait for a "
    "copy, not the saving between steps. Absent where the program does not report it.",
)
COMPILE_SECONDS_TOTAL = Metric(
    name="kopeck_compile_seconds_total",
    type="counter",
    unit="seconds",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Time spent compiling since the worker started, of its slowest rank. "
    "Absent where the program does not report it.",
)
GRAPH_BREAKS_TOTAL = Metric(
    name="kopeck_graph_breaks_total",
    type="counter",
    unit="graph_breaks",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Graph breaks of torch.compile, summed over the worker's ranks.",
)
RECOMPILES_TOTAL = Metric(
    name="kopeck_recompiles_total",
    type="counter",
    unit="recompiles",
    labels=(*WORKER_LABELS, "reason"),
    exported_by="worker",
    help="Compilations after the warm-up, summed over the worker's ranks, by what nothing had been "
    "compiled for: shape, dtype or stride of a tensor, grad_mode (or requires_grad), global_state "
    "(autocast, threads, determinism), object_identity, type or value of what is no tensor, "
    "new_code that was never called before, other. A steady job has none.",
)
EAGER_FALLBACKS_TOTAL = Metric(
    name="kopeck_eager_fallbacks_total",
    type="counter",
    unit="calls",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Calls of compiled blocks that ran eagerly after the warm-up, summed over the worker's "
    "ranks: nothing was compiled for their shape. The log says what differs.",
)
COMPILE_CACHE_HITS_TOTAL = Metric(
    name="kopeck_compile_cache_hits_total",
    type="counter",
    unit="graphs",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Graphs that torch's compile cache had, summed over the worker's ranks.",
)
COMPILE_CACHE_MISSES_TOTAL = Metric(
    name="kopeck_compile_cache_misses_total",
    type="counter",
    unit="graphs",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Graphs that were compiled anew, summed over the worker's ranks. "
    "With spec.training.compile.cache a second attempt should have none.",
)
CUDAGRAPH_SKIPS_TOTAL = Metric(
    name="kopeck_cudagraph_skips_total",
    type="counter",
    unit="graphs",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Graphs that a compile mode wanted to record as CUDA graphs and could not, summed over "
    "the worker's ranks.",
)
NONFINITE_LOSSES_TOTAL = Metric(
    name="kopeck_nonfinite_losses_total",
    type="counter",
    unit="steps",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Steps whose loss, or norm of gradients to be clipped, was NaN or infinite. "
    "All workers see the same: take the maximum.",
)
LOSS_SPIKES_TOTAL = Metric(
    name="kopeck_loss_spikes_total",
    type="counter",
    unit="steps",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Steps whose loss was far above those before. "
    "All workers see the same loss: take the maximum.",
)
COMPILE_CHOICE_INFO = Metric(
    name="kopeck_compile_choice_info",
    type="info",
    labels=(*WORKER_LABELS, "mode"),
    exported_by="worker",
    help="Always 1: the compile mode that `auto` chose. Absent before, and for a mode that the "
    "spec names; the mode in use is a label of kopeck_worker_info.",
)
COMPILE_TRIAL_COMPILE_SECONDS = Metric(
    name="kopeck_compile_trial_compile_seconds",
    type="gauge",
    unit="seconds",
    labels=(*WORKER_LABELS, "mode"),
    exported_by="worker",
    help="What `auto` chose by: time that a mode compiled on trial, of the slowest rank, in this "
    "attempt or the one that tried it. Absent for modes not tried or not usable.",
)
COMPILE_TRIAL_STEP_SECONDS = Metric(
    name="kopeck_compile_trial_step_seconds",
    type="gauge",
    unit="seconds",
    labels=(*WORKER_LABELS, "mode"),
    exported_by="worker",
    help="What `auto` chose by: median step time of a mode on trial, of the slowest rank. "
    "Absent for modes not tried or not usable.",
)
COMPILE_BREAK_EVEN_STEPS = Metric(
    name="kopeck_compile_break_even_steps",
    type="gauge",
    unit="steps",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Steps after which the mode that `auto` chose has repaid its longer compilation, compared "
    "with the first mode tried. Absent where that one was kept.",
)
WORKER_INFO = Metric(
    name="kopeck_worker_info",
    type="info",
    labels=(*WORKER_LABELS, "attempt", "compile_mode", "gpu_model"),
    exported_by="worker",
    help="Always 1: attempt, compile mode and GPU model of the worker, the latter two once they "
    "are known. Join it on (namespace, pod).",
)
HOURLY_RATE_DOLLARS = Metric(
    name="kopeck_hourly_rate_dollars",
    type="gauge",
    unit="dollars",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Price of the worker's share of its node, in US dollars per hour. "
    "Absent while the price is unknown.",
)
SM_UTILIZATION_RATIO = Metric(
    name="kopeck_sm_utilization_ratio",
    type="gauge",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Share of time that a streaming multiprocessor has at least one warp, over all of them, "
    "0-1. Kernels of NCCL that only wait count too: read it beside tensor activity and MFU. "
    "Absent before Hopper, unless dcgmEndpoint names an exporter that has it.",
)
SM_OCCUPANCY_RATIO = Metric(
    name="kopeck_sm_occupancy_ratio",
    type="gauge",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Warps in flight / the most that fit, 0-1. About 0.15 is normal for dense matrix "
    "products: no value of it is good or bad. Absent as kopeck_sm_utilization_ratio is.",
)
TENSOR_ACTIVE_RATIO = Metric(
    name="kopeck_tensor_active_ratio",
    type="gauge",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Share of time that tensor cores compute, 0-1. Absent as kopeck_sm_utilization_ratio is.",
)
DRAM_ACTIVE_RATIO = Metric(
    name="kopeck_dram_active_ratio",
    type="gauge",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Bandwidth of the GPU's memory in use / its most, 0-1. "
    "Absent as kopeck_sm_utilization_ratio is.",
)
GPU_UTILIZATION_RATIO = Metric(
    name="kopeck_gpu_utilization_ratio",
    type="gauge",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Share of time that any kernel runs, 0-1, as nvidia-smi shows it: one busy thread makes "
    "it 1, so it is no measure of SM utilisation. Absent for MIG instances.",
)
GPU_THROTTLED_SECONDS_TOTAL = Metric(
    name="kopeck_gpu_throttled_seconds_total",
    type="counter",
    unit="seconds",
    labels=(*GPU_LABELS, "reason"),
    exported_by="worker",
    help="Time that the clock was held down since the worker started, by reason: sw_thermal, "
    "hw_thermal, hw_power_brake and sync_boost are faults. power_cap is not: a healthy GPU at "
    "full load is there most of the time. A reason that the driver does not tell is absent; all "
    "are for MIG instances, since they are the board's.",
)
GPU_SM_CLOCK_HERTZ = Metric(
    name="kopeck_gpu_sm_clock_hertz",
    type="gauge",
    unit="hertz",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Clock of the streaming multiprocessors. Absent for MIG instances.",
)
GPU_MEMORY_USED_BYTES = Metric(
    name="kopeck_gpu_memory_used_bytes",
    type="gauge",
    unit="bytes",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Memory of the GPU that programs hold, PyTorch's cache included.",
)
GPU_POWER_WATTS = Metric(
    name="kopeck_gpu_power_watts",
    type="gauge",
    unit="watts",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Power that the board draws. Absent for MIG instances.",
)
GPU_TEMPERATURE_CELSIUS = Metric(
    name="kopeck_gpu_temperature_celsius",
    type="gauge",
    unit="celsius",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Temperature of the GPU. Absent for MIG instances.",
)
GPU_ENERGY_JOULES_TOTAL = Metric(
    name="kopeck_gpu_energy_joules_total",
    type="counter",
    unit="joules",
    labels=GPU_LABELS,
    exported_by="worker",
    help="Energy that the board took since the worker started. Absent for MIG instances.",
)
GPU_NVLINK_BYTES_TOTAL = Metric(
    name="kopeck_gpu_nvlink_bytes_total",
    type="counter",
    unit="bytes",
    labels=(*GPU_LABELS, "direction"),
    exported_by="worker",
    help="Bytes over all NVLinks since the worker started, sent and received: rates of each "
    "second times its length. Absent without NVLink, before Hopper and for MIG instances.",
)
GPU_PCIE_BYTES_TOTAL = Metric(
    name="kopeck_gpu_pcie_bytes_total",
    type="counter",
    unit="bytes",
    labels=(*GPU_LABELS, "direction"),
    exported_by="worker",
    help="Bytes over PCIe since the worker started, sent and received: rates of each second times "
    "its length. Absent before Hopper and for MIG instances.",
)
GPU_XID_ERRORS_TOTAL = Metric(
    name="kopeck_gpu_xid_errors_total",
    type="counter",
    unit="errors",
    labels=(*GPU_LABELS, "xid"),
    exported_by="worker",
    help="Faults that the driver reported since the worker started, by XID; a number appears with "
    "its first fault, so alert on > 0. 13, 31, 43 and 45 are usually the program's own.",
)
CPU_THROTTLED_SECONDS_TOTAL = Metric(
    name="kopeck_cpu_throttled_seconds_total",
    type="counter",
    unit="seconds",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Time that the training container's CPU limit kept it from running, as the kernel counts "
    "it: added up over CPUs. Absent without a limit.",
)
CPU_PERIODS_TOTAL = Metric(
    name="kopeck_cpu_periods_total",
    type="counter",
    unit="periods",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Periods of the training container's CPU limit in which it had work. "
    "Absent without a limit.",
)
CPU_THROTTLED_PERIODS_TOTAL = Metric(
    name="kopeck_cpu_throttled_periods_total",
    type="counter",
    unit="periods",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Those periods in which the training container used up its CPU limit. "
    "Absent without a limit.",
)
COMM_OVERLAP_RATIO = Metric(
    name="kopeck_comm_overlap_ratio",
    type="gauge",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Share of communication time that ran beside computation in the last trace window, 0-1, "
    "the mean over the worker's ranks. Absent without a window, and without communication.",
)
COMM_RATIO = Metric(
    name="kopeck_comm_ratio",
    type="gauge",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Communication time / step time in the last trace window, 0-1, the mean over the "
    "worker's ranks. Absent without a window.",
)
COMM_EXPOSED_RATIO = Metric(
    name="kopeck_comm_exposed_ratio",
    type="gauge",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Communication time that no computation hid / step time in the last trace window, 0-1, "
    "the mean over the worker's ranks. Absent without a window.",
)
COMM_WAIT_RATIO = Metric(
    name="kopeck_comm_wait_ratio",
    type="gauge",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Communication time spent waiting for late ranks / step time in the last trace window, "
    "0-1, the mean over the worker's ranks. Absent where collectives could not be matched.",
)
COMM_WINDOW_TIMESTAMP_SECONDS = Metric(
    name="kopeck_comm_window_timestamp_seconds",
    type="gauge",
    unit="seconds",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="Unix time of the last trace window, of the rank whose is oldest: what kopeck_comm_* "
    "speak of. Its age is time() minus this.",
)
PROFILER_ACTIVE = Metric(
    name="kopeck_profiler_active",
    type="gauge",
    labels=WORKER_LABELS,
    exported_by="worker",
    help="1 while a trace window is recorded and for six seconds after it, else 0. Gauges of GPUs "
    "that are scraped with a 1 may be of a time with the profiler. Throttled seconds and energy, "
    "which are read every 5 and 10 s, and what a DCGM exporter tells, up to 45 s old and by its "
    "own interval older, may be of such a time later too. Absent before the first window.",
)
EXPORTER_ERRORS_TOTAL = Metric(
    name="kopeck_exporter_errors_total",
    type="counter",
    unit="errors",
    labels=(*WORKER_LABELS, "source", "reason"),
    exported_by="worker",
    help="Inputs that the exporter refused and readings that failed, by where they came from and "
    "what was wrong. Sources sampler, nvml, gpm, xid and cgroup are the sampler's, once one has "
    "reported, window those of the ranks' trace windows, once one was lost. sampler died: it was "
    "started again, and its totals began at 0. socket dropped are messages that ranks and samplers "
    "could not get through: totals are right again with the next one. gpm no_permission: the "
    "driver's RmProfilingAdminOnly is on.",
)

DOLLARS_PER_SAMPLE = Metric(
    name="kopeck_dollars_per_sample",
    type="gauge",
    unit="dollars_per_sample",
    labels=(*JOB_LABELS, "basis"),
    exported_by="operator",
    help="Unit cost of a job in US dollars. Basis all_in: net cost so far / samples kept; "
    "marginal: current hourly rate / current speed. Absent while either side is unknown. "
    "Over jobs divide sums, never average.",
)
JOB_COST_DOLLARS_TOTAL = Metric(
    name="kopeck_job_cost_dollars_total",
    type="counter",
    unit="dollars",
    labels=JOB_LABELS,
    exported_by="operator",
    help="Cost of a job so far in US dollars, from its ledger: all attempts, lost work included. "
    "Absent while a price is unknown.",
)
JOB_SAMPLES_KEPT = Metric(
    name="kopeck_job_samples_kept",
    type="gauge",
    unit="samples",
    labels=JOB_LABELS,
    exported_by="operator",
    help="Samples that a job has trained on and not lost. Falls when an attempt resumes from an "
    "older checkpoint.",
)
JOB_INFO = Metric(
    name="kopeck_job_info",
    type="info",
    labels=(*JOB_LABELS, "revision"),
    exported_by="operator",
    help="Always 1, once per job: what its other metrics are joined with, "
    "on (namespace, training_job).",
)
JOB_STATE = Metric(
    name="kopeck_job_state",
    type="gauge",
    labels=(*JOB_LABELS, "state"),
    exported_by="operator",
    help="1 for the state that the job is in; its other states have no series.",
)
RECONCILE_SECONDS = Metric(
    name="kopeck_reconcile_seconds",
    type="histogram",
    unit="seconds",
    exported_by="operator",
    buckets=RECONCILE_SECONDS_BUCKETS,
    help="Duration of one pass over one job.",
)
QUEUE_DEPTH = Metric(
    name="kopeck_queue_depth",
    type="gauge",
    unit="jobs",
    exported_by="operator",
    help="Jobs that are due for a pass and wait for a worker.",
)
WATCH_LAST_EVENT_TIMESTAMP_SECONDS = Metric(
    name="kopeck_watch_last_event_timestamp_seconds",
    type="gauge",
    unit="seconds",
    exported_by="operator",
    help="Unix time of the last event from the API server. Its age is time() minus this.",
)
API_REQUESTS_TOTAL = Metric(
    name="kopeck_api_requests_total",
    type="counter",
    unit="requests",
    labels=("verb", "resource", "code"),
    exported_by="operator",
    help="Requests to the API server, by HTTP status code.",
)

METRICS = tuple(each for each in list(globals().values()) if isinstance(each, Metric))
"""All of the above, in their order."""
