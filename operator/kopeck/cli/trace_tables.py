"""Tables of `kopeck trace`."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from kopeck.trace.bandwidth import Bandwidth
from kopeck.trace.hta import HtaFigures
from kopeck.trace.ranking import relatives
from kopeck.trace.report import RankReport, Report
from kopeck.trace.synchronisations import Synchronisation

_MOST_COLLECTIVES = 12
_MOST_SYNCHRONISATIONS = 8
_LONGEST_NAME = 18
_UNKNOWN = "–"

Cells = Sequence[str]


def tables(report: Report) -> Iterator[Table | Text]:
    """What a report says, from the whole to the parts; nothing for parts that are empty."""
    on_gpu = [rank for rank in report.ranks if rank.summary.breakdown]
    if on_gpu:
        yield _time(on_gpu)
        yield _launches(on_gpu)
    if any(rank.split for rank in on_gpu):
        yield _communication(on_gpu, report.stragglers)
    for rank in report.stragglers:
        yield _straggler(rank, on_gpu)
    if len(on_gpu) > 1:
        yield _ranking(on_gpu)
    if report.bandwidths:
        yield _collectives(report.bandwidths)
    yield from _synchronisations(report.ranks)


def _time(ranks: Sequence[RankReport]) -> Table:
    table = _table(
        "Where GPU time went",
        ("Rank", "Span", "Compute", "Exposed\ncomm.", "Copies", "Host\nwait", "Kernel\nwait"),
        ("Other\nidle", "Overlap"),
    )
    for rank in ranks:
        part = rank.summary.breakdown
        if part is None:
            continue
        idle = part.idle
        times = (part.compute_ns, part.exposed_ns, part.memory_ns)
        waits = (idle.host_wait_ns, idle.kernel_wait_ns, idle.other_ns)
        shares = [f"{each / part.span_ns:.1%}" for each in (*times, *waits)]
        overlap = _percent(part.overlap_ratio)
        table.add_row(_name(rank), _duration(part.span_ns), *shares, overlap)
    return table


def _launches(ranks: Sequence[RankReport]) -> Table:
    table = _table(
        "Launches",
        ("Rank", "Steps", "Kernels", "Kernels\nper step", "Delay\np50", "Delay\np99"),
    )
    for rank in ranks:
        summary, figures = rank.summary, rank.summary.launches
        kernels = summary.breakdown.kernels if summary.breakdown else 0
        per_step = summary.kernels_per_step
        table.add_row(
            _name(rank),
            str(len(summary.steps)) if summary.steps else _UNKNOWN,
            str(kernels),
            f"{per_step:g}" if per_step is not None else _UNKNOWN,
            _duration(figures.delay_p50_seconds * 1e9) if figures else _UNKNOWN,
            _duration(figures.delay_p99_seconds * 1e9) if figures else _UNKNOWN,
        )
    return table


def _communication(ranks: Sequence[RankReport], stragglers: Sequence[int]) -> Table:
    table = _table(
        "Communication kernels",
        ("Rank", "Transfer", "Waiting\nfor late", "Not\nsplit", "Held up\nothers", "Clock", "±"),
    )
    for rank in ranks:
        split, clock = rank.split, rank.clock
        cells = [_UNKNOWN] * 4
        if split:
            times = (split.transfer_ns, split.wait_ns, split.unsplit_ns, split.held_up_ns)
            cells = [_duration(each) for each in times]
        clocks = [_UNKNOWN] * 2
        if clock:
            clocks = [
                _duration(clock.offset_seconds * 1e9),
                _duration(clock.spread_seconds * 1e9),
            ]
        is_late = rank.summary.origin.rank in stragglers
        table.add_row(_name(rank), *cells, *clocks, style="bold" if is_late else None)
    return table


def _straggler(rank: int, ranks: Sequence[RankReport]) -> Text:
    split = next(each.split for each in ranks if each.summary.origin.rank == rank)
    held_up = _duration(split.held_up_ns) if split else _UNKNOWN
    return Text(f"Rank {rank} is late: each other rank waited {held_up} for it.", style="bold")


def _ranking(ranks: Sequence[RankReport]) -> Table:
    table = _table(
        "Times by the best rank's",
        ("Rank", "Without\nwaiting", "Compute", "Exposed\ncomm.", "Idle", "Score"),
    )
    for rank, relative in zip(ranks, relatives(ranks), strict=True):
        times = (relative.own, relative.compute, relative.exposed, relative.idle)
        cells = [_UNKNOWN if each is None else f"{each:.3f}" for each in times]
        score = _UNKNOWN if rank.score is None else f"{rank.score:.3f}"
        table.add_row(_name(rank), *cells, score)
    return table


def _collectives(bandwidths: Sequence[Bandwidth]) -> Table:
    table = _table(
        "Matched collectives",
        ("Kind", "Size", "Ranks", "Count", "Transfer\np50", "Algorithm", "Bus"),
        left=1,
    )
    for each in bandwidths[:_MOST_COLLECTIVES]:
        bus = "above link" if each.is_above_link else _rate(each.bus_bytes_per_second)
        table.add_row(
            each.kind.value,
            _size(each.bytes),
            str(each.ranks),
            str(each.count),
            _duration(each.transfer_seconds * 1e9),
            _rate(each.algorithm_bytes_per_second),
            bus,
        )
    return table


def _synchronisations(ranks: Sequence[RankReport]) -> Iterator[Table]:
    """Places that stop the host, over all ranks; those that stop it longest."""
    found: dict[tuple[str, tuple[str, ...]], list[Synchronisation]] = defaultdict(list)
    for rank in ranks:
        for each in rank.summary.synchronisations:
            if each.is_implicit:
                found[each.call, each.stack].append(each)
    if not found:
        return
    table = _table("Implicit synchronisations", ("Time", "Count", "Ranks", "Call"))
    table.add_column("From", overflow="fold")
    longest = sorted(found.items(), key=lambda each: -sum(one.seconds for one in each[1]))
    for (call, stack), ones in longest[:_MOST_SYNCHRONISATIONS]:
        seconds, count = sum(one.seconds for one in ones), sum(one.count for one in ones)
        cells = (_duration(seconds * 1e9), str(count), str(len(ones)), call)
        table.add_row(*cells, _place(stack))
    yield table


def _place(stack: Sequence[str]) -> str:
    """The program's innermost own name, the operator that it called, and the one that waits."""
    own = [at for at, name in enumerate(stack) if not name.startswith("aten::")]
    first = own[-1] if own else 0
    shown = stack[first : first + 2]
    last = stack[-1:] if len(stack) > first + 2 else ()
    return " > ".join((*shown, *last))


def hta_tables(files: Sequence[str], figures: Sequence[HtaFigures | None]) -> Iterator[Table]:
    """What HTA answers, by its names."""
    overlap = _table(
        "get_comm_comp_overlap, get_temporal_breakdown (µs)",
        ("Trace", "Overlap\n%", "Comm.", "Exposed", "Idle", "Compute", "Non-\ncompute"),
        ("Kernel\ntime",),
        left=1,
    )
    idle = _table(
        "get_idle_time_breakdown (µs)",
        ("Trace", "Stream", "Host wait", "Kernel wait", "Other"),
        left=1,
    )
    launches = _table(
        "get_cuda_kernel_launch_stats (µs)",
        ("Trace", "Pairs", "CPU", "GPU", "Delay\np50", "Short\nkernels", "Long\ncalls"),
        ("Long\ndelays",),
        left=1,
    )
    for number, each in enumerate(figures):
        name = _short(files[number])
        if each is None:
            overlap.add_row(name, *[_UNKNOWN] * 7)
            continue
        busy = (each.communication_us, each.exposed_us, each.idle_us, each.compute_us)
        times = (*busy, each.non_compute_us, each.kernel_time_us)
        percent = _UNKNOWN if each.overlap_percent is None else f"{each.overlap_percent:.2f}"
        overlap.add_row(name, percent, *(f"{time:.0f}" for time in times))
        for stream, waits in each.idle_by_stream.items():
            idle.add_row(name, str(stream), *(f"{wait:.0f}" for wait in waits))
        if each.launches:
            launches.add_row(name, *(f"{value:.10g}" for value in each.launches))
    yield from (overlap, idle, launches)


def _table(title: str, labels: Cells, more: Cells = (), *, left: int = 0) -> Table:
    """With figures at the right; `left` is the number of the first columns that are words."""
    table = Table(title=title, box=None, title_justify="left", title_style="bold")
    for number, label in enumerate((*labels, *more)):
        table.add_column(label, justify="left" if number < left else "right", no_wrap=True)
    return table


def _short(file: str) -> str:
    """The end of a path, where traces differ."""
    name = re.sub(r"(\.pt)?(\.trace)?\.json(\.gz)?$", "", file.rpartition("/")[2])
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _name(rank: RankReport) -> str:
    number = rank.summary.origin.rank
    return _UNKNOWN if number is None else str(number)


def _percent(ratio: float | None) -> str:
    return _UNKNOWN if ratio is None else f"{ratio:.1%}"


def _duration(nanoseconds: float) -> str:
    """With four digits, in the unit that fits."""
    if not nanoseconds:
        return "0"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{_four_digits(nanoseconds / size)} {unit}"
    return f"{nanoseconds:.4g} ns"


def _four_digits(value: float) -> str:
    return f"{value:#.4g}".rstrip(".")


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{_four_digits(count / size)} {unit}"
    return f"{count} B"


def _rate(bytes_per_second: float | None) -> str:
    return _UNKNOWN if bytes_per_second is None else f"{bytes_per_second / 1e9:.1f} GB/s"
