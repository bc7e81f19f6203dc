"""What a rank says is taken in whole or not at all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck_exporter.fields import MalformedReportError, json_object
from kopeck_exporter.names import RECOMPILE_REASONS
from kopeck_exporter.report import Report, read_report
from tests.unit.exporter.reporting import A_WINDOW, a_message

WHOLE = ["rank", "local_rank", "seq", "samples"]
WHOLE_IF_KNOWN = [
    "step",
    "job_samples",
    "tokens",
    "graph_breaks",
    "recompiles",
    "eager_fallbacks",
    "compile_cache_hits",
    "compile_cache_misses",
    "cudagraph_skips",
    "dropped_reports",
    "nonfinite_losses",
    "loss_spikes",
    "checkpoint_step",
]
NUMBERS = ["time", "step_seconds_sum"]
NUMBERS_IF_KNOWN = [
    *("step_seconds", "steady_step_seconds", "jitter_seconds_sum"),
    *("samples_per_second", "mean_step_seconds", "step_idle_seconds", "mfu"),
    *("compile_seconds", "profiler_idle_seconds"),
]
REQUIRED = [*WHOLE, *NUMBERS, "v", "step_bucket_counts", "phase_seconds"]
OPTIONAL = [
    *(*WHOLE_IF_KNOWN, *NUMBERS_IF_KNOWN),
    *(
        "loss",
        "compile_mode",
        "step_part_seconds",
        "jitter_bucket_counts",
        "comm_window",
        "window_faults",
    ),
]
NOT_NUMBERS = ["3", True, [1], {"a": 1}, -1, float("nan"), float("inf"), 10**400]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def read(data: bytes) -> Report:
    return read_report(json_object(data))


def refused(data: bytes) -> str:
    with pytest.raises(MalformedReportError) as refusal:
        read(data)
    return str(refusal.value)


@pytest.mark.parametrize("field", REQUIRED)
def test_a_report_without_a_required_field_is_refused_by_its_name(field: str) -> None:
    assert field in refused(encoded(a_message(**{field: None})))


@pytest.mark.parametrize("wrong", NOT_NUMBERS, ids=str)
@pytest.mark.parametrize("field", [*WHOLE, *WHOLE_IF_KNOWN, *NUMBERS, *NUMBERS_IF_KNOWN])
def test_a_field_that_is_no_number_is_refused_by_its_name(field: str, wrong: object) -> None:
    assert field in refused(encoded(a_message(**{field: wrong})))


@pytest.mark.parametrize("field", OPTIONAL)
def test_what_is_unknown_may_be_left_out_or_be_null(field: str) -> None:
    without = a_message(**{field: None})
    assert read(encoded(without)) == read(encoded(without | {field: None}))


@pytest.mark.parametrize("field", [*WHOLE, *WHOLE_IF_KNOWN])
def test_half_a_sample_is_refused(field: str) -> None:
    assert field in refused(encoded(a_message(**{field: 1.5})))


@pytest.mark.parametrize(
    "counts", [[], [1] * 17, [1] * 19, [0.5] * 18, [-1] * 18, [None] * 18, "0" * 18, {"0": 1}]
)
def test_bucket_counts_that_do_not_fit_the_buckets_are_refused(counts: object) -> None:
    assert "step_bucket_counts" in refused(encoded(a_message(step_bucket_counts=counts)))


@pytest.mark.parametrize("counts", [[], [1] * 13, [0.5] * 14, [None] * 14, {"0": 1}])
def test_jitter_counts_that_do_not_fit_the_buckets_are_refused(counts: object) -> None:
    assert "jitter_bucket_counts" in refused(encoded(a_message(jitter_bucket_counts=counts)))


@pytest.mark.parametrize("wrong", [[], 7, {"time": 1}, A_WINDOW | {"comm_ratio": 1.5}])
def test_a_window_that_is_none_is_refused(wrong: object) -> None:
    assert refused(encoded(a_message(comm_window=wrong)))


@pytest.mark.parametrize(
    "phases", [[], "compute", {"lost": 1.0}, {"compute": -1}, {"compute": None}, {"idle": "1"}]
)
def test_phases_that_are_not_ours_or_no_seconds_are_refused(phases: object) -> None:
    assert "phase_seconds" in refused(encoded(a_message(phase_seconds=phases)))


@pytest.mark.parametrize("faults", [[], "hung", {"lost": 1}, {"hung": -1}, {"hung": "1"}])
def test_faults_of_windows_that_are_not_ours_or_no_counts_are_refused(faults: object) -> None:
    assert "window_faults" in refused(encoded(a_message(window_faults=faults)))


@pytest.mark.parametrize("parts", [[], "other", {"lost": 1.0}, {"other": -1}, {"other": "1"}])
def test_parts_that_are_not_ours_or_no_seconds_are_refused(parts: object) -> None:
    assert "step_part_seconds" in refused(encoded(a_message(step_part_seconds=parts)))


@pytest.mark.parametrize(
    "reasons",
    [[1], "shape", {"shape": -1}, {"shape": 1.5}, {"shape": "1"}, {"shape": 2, "dtype": 1}],
)
def test_reasons_that_are_no_counts_or_more_than_the_recompiles_are_refused(reasons: Any) -> None:
    assert "recompile_reasons" in refused(encoded(a_message(recompile_reasons=reasons)))


@given(
    recompiles=st.integers(0, 100),
    reasons=st.dictionaries(
        st.sampled_from([*RECOMPILE_REASONS, "of_tomorrow"]), st.integers(0, 9)
    ),
)
def test_recompiles_add_up_whatever_reasons_a_trainer_of_another_version_tells(
    recompiles: int, reasons: dict[str, int]
) -> None:
    more = sum(reasons.values()) + recompiles
    read_back = read(encoded(a_message(recompiles=more, recompile_reasons=reasons))).totals
    assert read_back.recompiles == more
    of_old = read(encoded(a_message(recompiles=more, recompile_reasons=None))).totals
    assert of_old.recompiles_by_reason == (0,) * (len(RECOMPILE_REASONS) - 1) + (more,)


@pytest.mark.parametrize("text", [7, "a" * 1001])
def test_a_mismatch_that_is_no_sentence_is_refused(text: object) -> None:
    assert "numerics_mismatch" in refused(encoded(a_message(numerics_mismatch=text)))


@pytest.mark.parametrize("mode", ["", "Default", "a" * 33, 'a"b', "\ud800", "a\n", 7])
def test_a_compile_mode_that_is_no_plain_word_is_refused(mode: object) -> None:
    assert "compile_mode" in refused(encoded(a_message(compile_mode=mode)))


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe", b"null", b"[]", b"1", b"{", b'{"v":1}', b"[" * 60_000, b"9" * 60_000],
    ids=lambda data: repr(data[:10]),
)
def test_bytes_that_are_no_report_are_refused(data: bytes) -> None:
    assert refused(data)


@given(st.binary())
def test_arbitrary_bytes_are_refused_and_nothing_worse(data: bytes) -> None:
    assert refused(data)


@given(field=st.sampled_from([*a_message(), "tokens", "compile_decision"]), value=json_values)
def test_a_field_of_any_kind_is_read_or_refused_and_nothing_worse(field: str, value: Any) -> None:
    try:
        report = read(json.dumps(a_message() | {field: value}).encode())
    except MalformedReportError:
        return
    assert report.totals.samples >= 0


def test_a_report_of_another_version_is_refused() -> None:
    assert refused(encoded(a_message(v=2))) == "v is not 1"


def test_fields_that_we_do_not_know_are_passed_over() -> None:
    assert read(encoded(a_message(colour="red"))).step == 1


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), -float("inf"), 10**400])
def test_a_diverged_loss_is_unknown_and_keeps_the_counts(loss: float) -> None:
    report = read(encoded(a_message(loss=loss)))
    assert report.loss is None
    assert report.totals.samples == 8


def test_a_loss_may_be_negative() -> None:
    assert read(encoded(a_message(loss=-1.5))).loss == -1.5
