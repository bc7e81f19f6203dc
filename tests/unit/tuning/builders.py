"""Outcomes of tunings, with the facts that a test's sentence leaves out."""

from decimal import Decimal
from typing import Literal

from hypothesis import strategies as st

from kopeck.api.training import ActivationsSpec
from kopeck.tuning.outcome import Infeasible, Measured
from kopeck.tuning.points import Point

ActivationMode = Literal["none", "full", "selective", "budget"]


def a_point(
    micro_batch: int = 1,
    accumulation: int = 4,
    mode: ActivationMode = "none",
    memory_budget: float | None = None,
) -> Point:
    activations = ActivationsSpec(mode=mode, memory_budget=memory_budget)
    return Point(micro_batch=micro_batch, accumulation=accumulation, activations=activations)


def measured(
    step_seconds: float = 1.0,
    peak_bytes: int = 2**30,
    dollars_per_sample: str | None = None,
    point: Point | None = None,
) -> Measured:
    dollars = None if dollars_per_sample is None else Decimal(dollars_per_sample)
    return Measured(
        point=point or a_point(),
        step_seconds=step_seconds,
        peak_bytes=peak_bytes,
        memory="device",
        dollars_per_sample=dollars,
    )


def out_of_memory(point: Point) -> Infeasible:
    return Infeasible(point=point, kind="out-of-memory", reason="out of memory")


def tunings(*, priced: bool) -> st.SearchStrategy[list[Measured]]:
    """Measured points, few enough values apart that some are equal."""
    dollars = st.decimals("0.001", "9", places=3).map(str) if priced else st.none()
    one = st.builds(
        measured,
        step_seconds=st.sampled_from([0.1, 0.2, 0.3, 5.0]),
        peak_bytes=st.integers(1, 5),
        dollars_per_sample=dollars,
    )
    return st.lists(one, min_size=1, max_size=8)


any_tuning = st.booleans().flatmap(lambda priced: tunings(priced=priced))
