"""One step of each rank as a picture: computation, communication, what of it is exposed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kopeck.trace.intervals import Intervals
from kopeck.trace.report import RankReport
from kopeck.trace.timeline import WHOLE_TRACE, Timeline

# Colours that the colour-blind tell apart (Okabe and Ito, 2008); red for what costs.
_COMPUTE, _HIDDEN, _EXPOSED, _MEMORY = "#0072b2", "#56b4e9", "#d62728", "#999999"
_INK, _PALE, _GRID = "#1f2328", "#6e7781", "#eaeef2"
_WIDTH_INCHES, _INCHES_PER_RANK, _FRAME_INCHES = 12.0, 0.62, 1.5
_MOST_RANKS = 64


def drawn_step(ranks: Sequence[RankReport]) -> int | None:
    """The number of the middle step that all ranks have; None where they share none."""
    shared = set.intersection(*(set(rank.summary.timelines) for rank in ranks)) if ranks else set()
    return sorted(shared)[(len(shared) - 1) // 2] if shared else None


def draw(ranks: Sequence[RankReport], step: int, file: Path) -> None:
    """Write a PNG or SVG, by the file's suffix; of many ranks the first ones."""
    from matplotlib.figure import Figure  # noqa: PLC0415  heavy

    shown = list(ranks[:_MOST_RANKS])
    height = _FRAME_INCHES + _INCHES_PER_RANK * len(shown)
    figure = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")
    axes = figure.subplots()
    zero_ns = min(_begin_ns(rank, step) for rank in shown)
    end_ms = 0.0
    for place, rank in enumerate(shown):
        timeline, shift_ns = rank.summary.timelines[step], _shift_ns(rank, step) - zero_ns
        _draw_rank(axes, place, timeline, shift_ns)
        end_ms = max(end_ms, (timeline.bounds_ns[1] + shift_ns) / 1e6)
    axes.set_xlim(0, end_ms)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_yticks(range(len(shown)), [_label(rank, step) for rank in shown])
    axes.set_xlabel("milliseconds since the first rank began", color=_PALE)
    name = "the whole trace" if step == WHOLE_TRACE else f"step {step}"
    part = f", the first {len(shown)} of {len(ranks)} ranks" if len(ranks) > len(shown) else ""
    axes.set_title(f"GPU time of {name}{part}", loc="left", color=_INK, pad=30)
    _finish(axes)
    figure.savefig(file, dpi=120)


def _draw_rank(axes: Any, place: int, timeline: Timeline, shift_ns: int) -> None:
    """Computation above, communication below; what is exposed over the height of both."""
    rows = (
        (timeline.compute, place - 0.36, 0.36, _COMPUTE),
        (timeline.memory, place - 0.36, 0.36, _MEMORY),
        (timeline.communication, place, 0.36, _HIDDEN),
        (timeline.exposed, place, 0.36, _EXPOSED),
    )
    for intervals, bottom, height, colour in rows:
        bars = _bars_ms(intervals, shift_ns)
        axes.broken_barh(bars, (bottom, height), facecolors=colour, linewidth=0)


def _bars_ms(intervals: Intervals, shift_ns: int) -> list[tuple[float, float]]:
    starts = (intervals.starts_ns + shift_ns) / 1e6
    lengths = (intervals.ends_ns - intervals.starts_ns) / 1e6
    return list(zip(starts.tolist(), lengths.tolist(), strict=True))


def _shift_ns(rank: RankReport, step: int) -> int:
    """From the trace's own times to those of the reference's clock, in a step."""
    base_ns = rank.summary.origin.base_ns
    begin_ns = base_ns + rank.summary.timelines[step].bounds_ns[0]
    return base_ns - (rank.clock.ahead_ns(begin_ns) if rank.clock else 0)


def _begin_ns(rank: RankReport, step: int) -> int:
    return rank.summary.timelines[step].bounds_ns[0] + _shift_ns(rank, step)


def _label(rank: RankReport, step: int) -> str:
    timeline = rank.summary.timelines[step]
    start, end = timeline.bounds_ns
    share = timeline.exposed.total_ns / (end - start)
    number = rank.summary.origin.rank
    name = "rank unknown" if number is None else f"rank {number}"
    return f"{name}\n{share:.1%} exposed"


def _finish(axes: Any) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415  heavy

    legend = (
        ("computation", _COMPUTE),
        ("copies and memsets", _MEMORY),
        ("communication, hidden", _HIDDEN),
        ("communication, exposed", _EXPOSED),
    )
    axes.legend(
        handles=[Patch(facecolor=colour, label=label) for label, colour in legend],
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=len(legend),
        frameon=False,
        borderpad=0,
        borderaxespad=0.6,
        handlelength=1.2,
    )
    axes.grid(axis="x", color=_GRID)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_PALE, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
