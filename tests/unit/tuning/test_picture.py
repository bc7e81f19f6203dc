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
    assert "micro-batch 2 × 2: ValueError: a < b & c" in told
    assert "micro-batch 4 × 1: out of memory" in told


def test_dollars_are_drawn_where_they_are_known() -> None:
    assert "$/1K samples" in texts(draw("job", [measured(dollars_per_sample="0.1")]))
    assert not any("$" in text for text in texts(draw("job", [measured()])))


@given(st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=9), st.sampled_from([1.0, 2.0**30]))
def test_an_axis_holds_its_values_and_a_handful_of_ticks(values: list[float], unit: float) -> None:
    scale = scale_of(values, 0, 100)
    ticks = scale.ticks(unit)
    assert all(0 <= scale(value) <= 100 for value in [*values, *ticks])
    assert 2 <= len(ticks) <= 8
    assert len(set(ticks)) == len(ticks)
