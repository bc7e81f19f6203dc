"""The picture of a tuning."""

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from kopeck.tuning.outcome import Infeasible, Measured
from kopeck.tuning.picture import draw
from kopeck.tuning.scale import scale_of
from tests.unit.tuning.builders import a_point, any_tuning, measured, out_of_memory

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314


@given(any_tuning)
def test_every_point_has_its_dot_in_the_picture(points: list[Measured]) -> None:
    svg = ET.fromstring(draw("job", points))  # noqa: S314
    dots = [element for element in svg.iter(f"{SVG}circle") if element.get("r") == "5"]
    assert len(dots) == len(points)
    for dot in dots:
        assert 90 <= float(dot.get("cx", "nan")) <= 650
        assert 70 <= float(dot.get("cy", "nan")) <= 420


def test_points_that_cannot_be_used_are_written_below_with_their_reason() -> None:
    failed = Infeasible(point=a_point(2, 2), kind="failed", reason="ValueError: a < b & c")
    told = texts(draw("job", [measured(), failed, out_of_memory(a_point(4, 1))]))
    assert "micro-batch 2 × 2, none: ValueError: a < b & c" in told
    assert "micro-batch 4 × 1, none: out of memory" in told


def test_each_activation_mode_has_its_colour_and_its_name() -> None:
    modes = [a_point(), a_point(mode="full"), a_point(mode="budget", memory_budget=0.5)]
    svg = draw("job", [measured(point=point) for point in modes])
    assert {"none", "full", "budget 0.5"} <= set(texts(svg))
    circles = ET.fromstring(svg).iter(f"{SVG}circle")  # noqa: S314
    colours = [circle.get("fill") for circle in circles if circle.get("r") == "4"]
    assert len(set(colours)) == 3


def test_dollars_are_drawn_where_they_are_known() -> None:
    assert "$/1K samples" in texts(draw("job", [measured(dollars_per_sample="0.1")]))
    assert not any("$" in text for text in texts(draw("job", [measured()])))


@given(st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=9), st.sampled_from([1.0, 2.0**30]))
def test_an_axis_holds_its_values_and_its_ticks(values: list[float], unit: float) -> None:
    scale = scale_of(values, 0, 100)
    ticks = scale.ticks(unit)
    for value in [*values, *ticks]:
        assert -1e-6 <= scale(value) <= 100 + 1e-6
    assert len(ticks) >= 2
    assert ticks == sorted(set(ticks))


@given(st.floats(1e-3, 1e3), st.floats(1.1, 8))
def test_of_values_alike_an_axis_has_a_handful_of_ticks(low: float, ratio: float) -> None:
    assert 2 <= len(scale_of([low, low * ratio], 0, 100).ticks(1)) <= 9
