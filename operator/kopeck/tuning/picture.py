"""The Pareto front as a picture, SVG: peak memory across, step time up."""

from collections.abc import Sequence
from decimal import Decimal
from textwrap import shorten
from xml.etree import ElementTree as ET

from kopeck.cost.dollars import readable_dollars
from kopeck.tuning.front import best_of, pareto_front
from kopeck.tuning.outcome import Infeasible, Measured, Outcome
from kopeck.tuning.scale import Scale, scale_of
from kopeck.tuning.words import MEMORY_LABELS, readable_bytes, readable_seconds

_WIDTH, _PLOT_BOTTOM = 760, 420
_LEFT, _RIGHT, _TOP = 90, 650, 70
_LINE_HEIGHT = 18
_LABEL_WIDTH = 60
_LEGEND_WIDTH = 110
_LONGEST_LINE = 85
"""Characters that fit beside each other."""
_INK, _PALE, _GRID = "#1f2328", "#6e7781", "#eaeef2"
_COLOURS = {"none": "#0072b2", "selective": "#009e73", "budget": "#cc79a7", "full": "#d55e00"}
"""By activation mode: colours that the colour-blind tell apart (Okabe and Ito, 2008)."""


def draw(title: str, outcomes: Sequence[Outcome]) -> str:
    """An SVG document. Points off the front are hollow; what cannot be used stands below."""
    measured = [each for each in outcomes if isinstance(each, Measured)]
    infeasible = [each for each in outcomes if isinstance(each, Infeasible)]
    height = _PLOT_BOTTOM + 70 + _LINE_HEIGHT * len(infeasible)
    svg = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {_WIDTH} {height}",
            "width": str(_WIDTH),
            "height": str(height),
            "font-family": "system-ui, Helvetica, Arial, sans-serif",
            "font-size": "13",
        },
    )
    ET.SubElement(svg, "rect", {"width": "100%", "height": "100%", "fill": "white"})
    _text(svg, _LEFT, 30, title, size=16)
    if measured:
        _plot(svg, measured)
    for line, each in enumerate(infeasible):
        y = _PLOT_BOTTOM + 70 + line * _LINE_HEIGHT
        said = shorten(f"{each.point}: {each.reason}", _LONGEST_LINE, placeholder=" …")
        _text(svg, _LEFT, y, said, fill=_PALE)
    return ET.tostring(svg, encoding="unicode")


def _plot(svg: ET.Element, measured: Sequence[Measured]) -> None:
    x = scale_of([each.peak_bytes for each in measured], _LEFT, _RIGHT)
    y = scale_of([each.step_seconds for each in measured], _PLOT_BOTTOM, _TOP)
    _memory_axis(svg, x, MEMORY_LABELS[measured[0].memory])
    _time_axis(svg, y, measured[0])
    front = sorted(pareto_front(measured), key=lambda each: each.peak_bytes)
    _stairs(svg, [(x(each.peak_bytes), y(each.step_seconds)) for each in front])
    best = best_of(measured)
    for each in measured:
        at = (x(each.peak_bytes), y(each.step_seconds))
        _dot(svg, at, each, is_on_front=each in front, is_best=each is best)
    _labels(svg, [(x(each.peak_bytes), y(each.step_seconds), each) for each in front], best)
    _legend(svg, list(dict.fromkeys(each.point.activations_name for each in measured)))


def _memory_axis(svg: ET.Element, x: Scale, label: str) -> None:
    unit = 2**30 if x.high >= 2**30 else 2**20
    for value in x.ticks(unit):
        _line(svg, (x(value), _TOP), (x(value), _PLOT_BOTTOM))
        _text(svg, x(value), _PLOT_BOTTOM + 18, readable_bytes(value), fill=_PALE, anchor="middle")
    _text(svg, (_LEFT + _RIGHT) / 2, _PLOT_BOTTOM + 40, label, anchor="middle")


def _time_axis(svg: ET.Element, y: Scale, any_point: Measured) -> None:
    """Step time at the left; dollars, which it is proportional to, at the right if known."""
    _text(svg, _LEFT, _TOP - 14, "step time", anchor="end")
    dollars = any_point.dollars_per_sample
    if dollars is not None:
        _text(svg, _RIGHT + 8, _TOP - 14, "$/1K samples")
    for value in y.ticks(1):
        _line(svg, (_LEFT, y(value)), (_RIGHT, y(value)))
        _text(svg, _LEFT - 8, y(value) + 4, readable_seconds(value), fill=_PALE, anchor="end")
        if dollars is not None:
            told = readable_dollars(dollars * Decimal(value / any_point.step_seconds) * 1000)
            _text(svg, _RIGHT + 8, y(value) + 4, told, fill=_PALE)


def _stairs(svg: ET.Element, corners: Sequence[tuple[float, float]]) -> None:
    """The front: less time is bought with more memory, and between two points with none."""
    path = f"M {corners[0][0]:.1f} {corners[0][1]:.1f}"
    path += "".join(f" H {x:.1f} V {y:.1f}" for x, y in corners[1:])
    attributes = {"d": path, "fill": "none", "stroke": _PALE, "stroke-width": "1.5"}
    ET.SubElement(svg, "path", attributes)


def _dot(
    svg: ET.Element,
    at: tuple[float, float],
    measured: Measured,
    *,
    is_on_front: bool,
    is_best: bool,
) -> None:
    """With all figures where the mouse rests on it."""
    circle = {"cx": f"{at[0]:.1f}", "cy": f"{at[1]:.1f}"}
    if is_best:
        ring = circle | {"r": "10", "fill": "none", "stroke": _INK, "stroke-width": "2"}
        ET.SubElement(svg, "circle", ring)
    colour = _COLOURS[measured.point.activations.mode]
    fill = colour if is_on_front else "white"
    dot = ET.SubElement(svg, "circle", circle | {"r": "5", "fill": fill, "stroke": colour})
    figures = f"{readable_seconds(measured.step_seconds)}, {readable_bytes(measured.peak_bytes)}"
    ET.SubElement(dot, "title").text = f"{measured.point}: {figures}"


def _legend(svg: ET.Element, activations_names: Sequence[str]) -> None:
    for number, name in enumerate(activations_names):
        x = _LEFT + 20 + number * _LEGEND_WIDTH
        dot = {"cx": str(x), "cy": "52", "r": "4", "fill": _COLOURS[name.partition(" ")[0]]}
        ET.SubElement(svg, "circle", dot)
        _text(svg, x + 9, 56, name)


def _labels(
    svg: ET.Element, front: Sequence[tuple[float, float, Measured]], best: Measured | None
) -> None:
    """Below and left of the dots, where neither other dots nor the front are; from the top."""
    placed: list[tuple[float, float]] = []
    for x, y, each in front:
        label_y = y + _LINE_HEIGHT
        for other_x, other_y in placed:
            if abs(other_x - x) < _LABEL_WIDTH and label_y < other_y + _LINE_HEIGHT:
                label_y = other_y + _LINE_HEIGHT
        placed.append((x, label_y))
        said = f"{each.point.micro_batch} × {each.point.accumulation}"
        _text(svg, x - 6, label_y, ("best: " if each is best else "") + said, anchor="end")


def _line(svg: ET.Element, start: tuple[float, float], end: tuple[float, float]) -> None:
    ends = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
    ET.SubElement(
        svg, "line", {name: f"{value:.1f}" for name, value in ends.items()} | {"stroke": _GRID}
    )


def _text(  # noqa: PLR0913  what a text in a picture has
    svg: ET.Element,
    x: float,
    y: float,
    said: str,
    *,
    fill: str = _INK,
    anchor: str = "start",
    size: int = 13,
) -> None:
    attributes = {
        "x": f"{x:.1f}",
        "y": f"{y:.1f}",
        "fill": fill,
        "text-anchor": anchor,
        "font-size": str(size),
    }
    ET.SubElement(svg, "text", attributes).text = said
