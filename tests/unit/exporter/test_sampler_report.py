"""What a sampler says is taken in whole or not at all."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck_exporter.errors import Fault
from kopeck_exporter.fields import MalformedReportError
from kopeck_exporter.sampler_report import MOST_GPUS, read_sampler_report
from tests.unit.exporter.reporting import a_gpu_message, a_sampler_message

RATIOS = [
    "sm_utilization_ratio",
    "sm_occupancy_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "gpu_utilization_ratio",
]
NUMBERS = [
    "sm_clock_hertz",
    "memory_used_bytes",
    "power_watts",
    "temperature_celsius",
    "energy_joules",
]
BY_KEY = ["throttled_seconds", "nvlink_bytes", "pcie_bytes", "xids"]
NOT_NUMBERS = ["3", True, [1], -1, float("nan"), float("inf"), 9.2e18]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def refused(message: dict[str, Any]) -> str:
    with pytest.raises(MalformedReportError) as refusal:
        read_sampler_report(message)
    return str(refusal.value)


def with_gpu(**facts: Any) -> dict[str, Any]:
    return a_sampler_message(gpus=[a_gpu_message() | facts])


def test_a_message_is_read() -> None:
    report = read_sampler_report(a_sampler_message())
    assert (report.origin, report.sequence) == ("trainer", 1)
    assert [gpu.uuid for gpu in report.gpus] == ["GPU-0", "GPU-1"]
    assert report.gpus[0].xids == {31: 2}
    assert report.cpu is not None
    assert report.errors == {Fault.NVML_HUNG: 1}


@pytest.mark.parametrize("field", [*RATIOS, *NUMBERS, *BY_KEY, "model"])
def test_what_is_unknown_of_a_gpu_is_left_out(field: str) -> None:
    [gpu] = read_sampler_report(a_sampler_message(gpus=[a_gpu_message(**{field: None})])).gpus
    assert getattr(gpu, field) in (None, {})


@pytest.mark.parametrize("wrong", NOT_NUMBERS, ids=str)
@pytest.mark.parametrize("field", [*RATIOS, *NUMBERS])
def test_a_reading_that_is_no_number_is_refused_by_its_name(field: str, wrong: object) -> None:
    assert field in refused(with_gpu(**{field: wrong}))


@pytest.mark.parametrize("field", RATIOS)
def test_a_ratio_above_one_is_refused_by_its_name(field: str) -> None:
    assert field in refused(with_gpu(**{field: 1.5}))


@pytest.mark.parametrize("wrong", [[], "1", {"gpu_idle": 1.0}, *({"sent": x} for x in NOT_NUMBERS)])
@pytest.mark.parametrize("field", BY_KEY)
def test_values_by_a_key_that_is_not_ours_or_no_number_are_refused(
    field: str, wrong: object
) -> None:
    assert field in refused(with_gpu(**{field: wrong}))


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ({"v": 2}, "v is not 1"),
        ({"origin": "node"}, "origin"),
        ({"seq": None}, "seq"),
        ({"gpus": None}, "gpus"),
        ({"gpus": {}}, "gpus"),
        ({"gpus": [7]}, "gpus"),
        ({"gpus": [a_gpu_message()] * 2}, "two of one index"),
        ({"gpus": [a_gpu_message(each) for each in range(MOST_GPUS + 1)]}, "at most 64"),
        ({"cpu": {"periods": 1}}, "throttled_periods"),
        ({"cpu": 7}, "cpu"),
        ({"errors": {"nvml": {"tired": 1}}}, "errors"),
        ({"errors": {"socket": {"malformed": 1}}}, "errors"),
        ({"errors": {"nvml": 1}}, "nvml"),
        ({"errors": {"nvml": {"hung": -1}}}, "errors"),
    ],
)
def test_what_is_wrong_is_named(facts: dict[str, Any], named: str) -> None:
    assert named in refused(a_sampler_message(**facts))


@pytest.mark.parametrize("uuid", [None, 7, "", "GPU 1", 'a"b', "a" * 81])
def test_a_uuid_that_is_none_is_refused(uuid: object) -> None:
    assert "uuid" in refused(with_gpu(uuid=uuid))


@pytest.mark.parametrize("xids", [{"x": 1}, {"-1": 1}, {str(each): 1 for each in range(33)}])
def test_xids_that_are_none_or_too_many_are_refused(xids: object) -> None:
    assert "xids" in refused(with_gpu(xids=xids))


@pytest.mark.parametrize("build", [a_sampler_message, a_gpu_message])
@given(data=st.data())
def test_a_field_of_any_kind_is_read_or_refused_and_nothing_worse(
    build: Callable[[], dict[str, Any]], data: st.DataObject
) -> None:
    changed = build() | {data.draw(st.sampled_from(sorted(build()))): data.draw(json_values)}
    message = changed if build is a_sampler_message else a_sampler_message(gpus=[changed])
    try:
        report = read_sampler_report(message)
    except MalformedReportError:
        return
    assert report.sequence >= 0
