"""Waiting for late ranks apart from transfer, by collectives matched across ranks."""

import numpy as np
import pytest

from kopeck.api.errors import ConfigError
from kopeck.trace.bandwidth import bus_factor
from kopeck.trace.collectives import CollectiveKind
from kopeck.trace.kinds import Patterns
from kopeck.trace.report import Report
from kopeck.trace.summary import summarise
from tests.unit.trace.traces import (
    BEGIN_US,
    Event,
    a_call,
    a_kernel,
    a_step,
    a_trace,
    all_reduce,
    an_operator,
    measured,
    nccl,
    needs_shared_traces,
    read,
    report_on,
    together,
)

DLRM = "dlrm_8ranks_v100.tar.gz"


def _two_ranks(first: list[Event], second: list[Event]) -> Report:
    return together(
        a_trace(a_kernel(0, 1), *first, rank=0, world_size=2),
        a_trace(a_kernel(0, 1), *second, rank=1, world_size=2),
    )


def _waits(report: Report) -> list[tuple[int, int, int]]:
    """Transfer, waiting, not split, in microseconds by rank."""
    splits = [rank.split for rank in report.ranks]
    return [
        (split.transfer_ns // 1000, split.wait_ns // 1000, split.unsplit_ns // 1000)
        for split in splits
        if split
    ]


@needs_shared_traces
def test_the_eight_collectives_of_a_real_job_are_mostly_waiting() -> None:
    """Section B of the reference answers: SendRecv that are all-to-alls, and all-reduces."""
    report = report_on(DLRM)
    found = [
        (
            match.kind.value,
            match.transfer_ns // 1000,
            max(each.duration_ns for each in match.collectives.values()) // 1000,
        )
        for match in report.matches
    ]
    assert found == [
        ("all-to-all", 10, 7635),
        ("all-to-all", 8, 1108),
        ("all-to-all", 7, 176),
        ("all-to-all", 7, 133),
        ("all-reduce", 86, 307),
        ("all-to-all", 10, 545),
        ("all-reduce", 20, 602),
        ("all-reduce", 69, 952),
    ]
    splits = [rank.split for rank in report.ranks if rank.split]
    assert sum(split.transfer_ns for split in splits) == 1_736_000
    assert sum(split.transfer_ns + split.wait_ns for split in splits) == 48_542_000
    assert not any(split.unsplit_ns for split in splits)


@needs_shared_traces
def test_the_late_rank_of_a_real_job_is_named() -> None:
    """All others' all-to-alls wait for the begin of rank 7's."""
    report = report_on(DLRM)
    assert report.stragglers == (7,)
    assert all(abs(rank.clock.offset_seconds) <= 7e-6 for rank in report.ranks if rank.clock)


# communication, overlap, exposed, compute, idle, in tenths of microseconds; overlap in percent
@needs_shared_traces
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h200x2_fsdp2_compiled_rank0", (56829.5, 43885.8, 12943.7, 520824.9, 9276.1, 77.22)),
        ("h200x2_fsdp2_compiled_rank1", (100382.1, 82738.1, 17644.1, 521295.8, 5800.3, 82.42)),
        ("h200x2_fsdp2_eager_rank0", (70642.3, 57084.5, 13557.8, 614857.9, 9287.5, 80.81)),
        ("h200x2_fsdp2_eager_rank1", (58075.3, 44076.7, 13998.6, 616252.3, 9074.8, 75.90)),
    ],
)
def test_overlap_on_two_h200_is_what_an_independent_sweep_finds(
    name: str, expected: tuple[float, ...]
) -> None:
    part = report_on(f"{name}.json.gz").ranks[0].summary.breakdown
    assert part is not None
    assert part.overlap_ratio is not None
    times = (part.communication_ns, part.overlap_ns, part.exposed_ns, part.compute_ns, part.idle_ns)
    # That sweep is in floats of microseconds, which at these times are a nanosecond apart.
    assert [each / 1000 for each in times] == pytest.approx(expected[:-1], rel=0, abs=0.11)
    assert round(part.overlap_ratio * 100, 2) == expected[-1]


@needs_shared_traces
def test_waiting_and_transfer_of_two_h200_are_the_reference_ones() -> None:
    """100 collectives: sum of the minima 50.4 ms, of the ranks' own 56.8 and 100.4 ms."""
    report = report_on(*(f"h200x2_fsdp2_compiled_rank{rank}.json.gz" for rank in (0, 1)))
    assert len(report.matches) == 100
    assert _waits(report) == [(50383, 6446, 0), (50383, 49998, 0)]
    gathered = report.bandwidths[0]
    assert (gathered.kind, gathered.bytes) == (CollectiveKind.ALL_GATHER, 121_643_008)
    assert round((gathered.bus_bytes_per_second or 0) / 1e9) == 197


def test_the_shortest_is_the_transfer_and_the_rest_is_waiting() -> None:
    report = _two_ranks([all_reduce(10, 50)], [all_reduce(40, 20)])
    assert _waits(report) == [(20, 30, 0), (20, 0, 0)]
    assert report.stragglers == (1,)


def test_a_planted_delay_is_what_the_late_rank_is_charged_with() -> None:
    """Each of ten steps rank 1 comes 300 µs late."""
    first = [all_reduce(step * 1000, 320) for step in range(1, 11)]
    second = [all_reduce(step * 1000 + 300, 20) for step in range(1, 11)]
    report = _two_ranks(first, second)
    splits = [rank.split for rank in report.ranks]
    assert [split.held_up_ns for split in splits if split] == [0, 3_000_000]
    own = (10_320 - 3_000, 10_320)
    assert [rank.score for rank in report.ranks] == [1, own[0] / own[1]]


def test_waiting_on_two_streams_at_once_passes_once() -> None:
    """Rank 1 comes 95 µs late to both of a rank's collectives, which is all that rank 0 waits."""
    first = [all_reduce(10, 100), all_reduce(10, 100, stream=21, **{"Process Group Name": "1"})]
    second = [all_reduce(105, 5), all_reduce(105, 5, stream=21, **{"Process Group Name": "1"})]
    report = _two_ranks(first, second)
    assert _waits(report) == [(10, 190, 0), (10, 0, 0)]
    assert [rank.split and rank.split.held_up_ns for rank in report.ranks] == [0, 95_000]
    assert [rank.score for rank in report.ranks] == [1, 15 / 110]


def test_ranks_that_wait_for_each_other_in_turn_are_no_stragglers() -> None:
    first = [all_reduce(0, 320), all_reduce(1300, 20)]
    second = [all_reduce(300, 20), all_reduce(1000, 320)]
    assert _two_ranks(first, second).stragglers == ()


def test_clocks_that_disagree_change_nothing_and_are_told() -> None:
    """Rank 1's clock is two seconds ahead."""
    report = _two_ranks(
        [all_reduce(1000, 50), all_reduce(2000, 50)],
        [all_reduce(2_001_030, 20), all_reduce(2_002_030, 20)],
    )
    assert [transfer for transfer, _, _ in _waits(report)] == [40, 40]
    clock = report.ranks[1].clock
    assert clock is not None
    assert (clock.offset_seconds, clock.spread_seconds) == (2.0, 0.0)


def test_what_does_not_end_together_is_of_another_run_and_not_split() -> None:
    first = [all_reduce(step * 10_000, 50) for step in range(1, 9)]
    second = [all_reduce(step * 11_000, 50) for step in range(1, 9)]
    report = _two_ranks(first, second)
    assert _waits(report) == [(0, 0, 400), (0, 0, 400)]
    assert any("of another run" in note for note in report.notes)


def _half_a_minute(drift: float, late_us: float, ends_late_us: float = 0) -> list[Event]:
    """Steps by a clock that gains, in one of which a collective ends late."""
    events = []
    for step in range(1, 61):
        start, length = step * 500_000 + late_us, 500 - late_us
        late = ends_late_us if step == 40 else 0
        events.append(all_reduce((start + late) * (1 + drift), length * (1 + drift)))
    return events


@pytest.mark.parametrize("drift", [100e-6, -100e-6, 400e-6])
@pytest.mark.parametrize("ends_late_us", [0, 100_000])
def test_clocks_that_drift_apart_are_of_one_run(drift: float, ends_late_us: float) -> None:
    """The split compares durations, which a drift changes by no more than itself."""
    report = _two_ranks(_half_a_minute(0, 0), _half_a_minute(drift, 200, ends_late_us))
    assert report.notes == ()
    first, second = (rank.split for rank in report.ranks)
    assert first
    assert second
    assert first.wait_ns == pytest.approx(60 * 200_000, rel=2 * abs(drift))
    assert second.transfer_ns == pytest.approx(60 * 300_000, rel=2 * abs(drift))
    clock = report.ranks[1].clock
    assert clock is not None
    assert clock.drift == pytest.approx(drift, rel=1e-3)
    assert clock.spread_seconds < 1e-6
    for end_us in (500_500, 30_000_500):
        end_ns = round((BEGIN_US + end_us * (1 + drift)) * 1000)
        assert clock.ahead_ns(end_ns) == pytest.approx(end_us * drift * 1000, abs=100)


def _a_run(seed: int, rank: int, world_size: int, **group: object) -> str:
    """A hundred steps of about 20 ms, of a length that is each run's own."""
    told = {"Group size": world_size, "Process Group Ranks": str(list(range(world_size)))}
    ends = np.random.default_rng(seed).uniform(15_000, 25_000, 100).cumsum().tolist()
    events = [all_reduce(end - 500 + 10 * rank, 500 - 10 * rank, **(told | group)) for end in ends]
    return a_trace(a_kernel(0, 1), *events, rank=rank, world_size=world_size)


@pytest.mark.parametrize("stranger", [0, 1, 3])
def test_the_rank_of_another_run_is_named_whichever_it_is(stranger: int) -> None:
    report = together(
        *(_a_run(seed=rank == stranger, rank=rank, world_size=4) for rank in range(4))
    )
    (note,) = report.notes
    assert note.startswith(f"rank {stranger}: its collectives end up to ")
    assert "of another run" in note
    assert all(rank.split and not rank.split.transfer_ns for rank in report.ranks)


def test_a_stranger_in_a_group_apart_from_the_lowest_rank_is_named() -> None:
    groups = ("[0, 1]", "[0, 1]", "[2, 3, 4]", "[2, 3, 4]", "[2, 3, 4]")
    texts = [
        _a_run(
            rank == 2, rank, 5, **{"Process Group Ranks": told, "Group size": told.count(",") + 1}
        )
        for rank, told in enumerate(groups)
    ]
    report = together(*texts)
    (note,) = report.notes
    assert note.startswith("rank 2: ")
    splits = [rank.split for rank in report.ranks]
    assert [bool(split and split.transfer_ns) for split in splits] == [True, True] + [False] * 3


def test_runs_of_almost_one_pace_are_told_apart() -> None:
    """A steady step of 20 ms in one, 1 % longer in the other."""
    first = [all_reduce(step * 20_000, 50) for step in range(1, 61)]
    second = [all_reduce(step * 20_200, 50) for step in range(1, 61)]
    assert any("of another run" in note for note in _two_ranks(first, second).notes)


def test_a_missing_rank_leaves_collectives_unsplit() -> None:
    """The shortest of some ranks would be called a transfer that it is not."""
    alone = a_trace(all_reduce(0, 50), a_kernel(0, 1), rank=0, world_size=2)
    assert _waits(together(alone)) == [(0, 0, 50)]


def test_collectives_of_different_size_are_not_matched() -> None:
    other = all_reduce(0, 20) | {"args": all_reduce(0, 20)["args"] | {"In msg nelems": 5}}
    assert _waits(_two_ranks([all_reduce(0, 50)], [other])) == [(0, 0, 50), (0, 0, 20)]


def test_collectives_that_differ_in_number_are_not_matched() -> None:
    """Which of them is missing is not told."""
    report = _two_ranks([all_reduce(0, 50), all_reduce(100, 50)], [all_reduce(30, 20)])
    assert _waits(report) == [(0, 0, 100), (0, 0, 20)]


def test_a_sequence_number_matches_whatever_the_order() -> None:
    first = [all_reduce(0, 50, Seq=4), all_reduce(100, 30, Seq=5)]
    second = [all_reduce(120, 10, Seq=5), all_reduce(300, 10, Seq=6)]
    assert _waits(_two_ranks(first, second)) == [(10, 20, 50), (10, 0, 10)]


def test_steps_are_matched_by_their_number() -> None:
    """Rank 0 was recorded a step longer: its first step's collectives have no partner."""

    def steps(*numbers: int, length: int) -> list[Event]:
        events = []
        for place, number in enumerate(numbers):
            start = place * 1000
            events += [a_step(number, start, 900), a_call(start + 10, 5, number)]
            events += [all_reduce(start + 100 - length, length, correlation=number)]
        return events

    report = _two_ranks(steps(1, 2, length=40), steps(2, length=10))
    assert [transfer for transfer, _, _ in _waits(report)] == [10, 10]
    assert [unsplit for _, _, unsplit in _waits(report)] == [40, 0]


def test_streams_have_numbers_of_their_own_on_each_rank() -> None:
    first = [all_reduce(0, 50, stream=20), all_reduce(0, 40, stream=24)]
    second = [all_reduce(30, 20, stream=31), all_reduce(10, 30, stream=35)]
    assert _waits(_two_ranks(first, second)) == [(50, 40, 0), (50, 0, 0)]


def test_groups_of_one_name_are_told_apart_by_their_ranks() -> None:
    pair = {"Process Group Ranks": "[2, 3]"}
    report = together(
        a_trace(all_reduce(0, 50), rank=0, world_size=4),
        a_trace(all_reduce(30, 20), rank=1, world_size=4),
        a_trace(all_reduce(0, 70, **pair), rank=2, world_size=4),
        a_trace(all_reduce(60, 10, **pair), rank=3, world_size=4),
    )
    assert [wait for _, wait, _ in _waits(report)] == [30, 0, 60, 0]


def test_a_cut_list_of_ranks_is_looked_up_in_the_head() -> None:
    cut = {"Process Group Ranks": "[0, ...]", "Process Group Name": "dp"}
    group = {"pg_config": [{"pg_name": "dp", "ranks": [0, 1]}]}
    texts = []
    for rank, (start, length) in enumerate(((0, 50), (30, 20))):
        told = {"backend": "nccl", "rank": rank, "world_size": 4} | group
        event = all_reduce(start, length, **cut)
        texts.append(a_trace(event, distributedInfo=told))
    assert _waits(together(*texts)) == [(20, 30, 0), (20, 0, 0)]


@pytest.mark.parametrize("kind", ["Broadcast", "Reduce", "Gather", "Scatter", "Generic_4"])
def test_kinds_whose_ranks_may_leave_early_are_not_split(kind: str) -> None:
    report = _two_ranks([nccl(0, 50, kind)], [nccl(30, 20, kind)])
    assert _waits(report) == [(0, 0, 50), (0, 0, 20)]


@pytest.mark.parametrize("kind", ["AllReduce", "AllGather", "ReduceScatter"])
def test_kinds_are_told_by_kernels_where_torch_does_not_tell(kind: str) -> None:
    report = _two_ranks([nccl(0, 50, kind)], [nccl(30, 20, kind)])
    assert _waits(report) == [(20, 30, 0), (20, 0, 0)]


def test_an_all_to_all_is_told_by_the_annotation_around_its_launch() -> None:
    """NCCL runs it as sends and receives."""

    def all_to_all(start: float, length: float) -> list[Event]:
        annotation = an_operator(start - 10, 8, "nccl:all_to_all", "user_annotation")
        kernel = nccl(start, length, "SendRecv", correlation=5)
        return [annotation, a_call(start - 8, 4, 5), kernel]

    report = _two_ranks(all_to_all(20, 50), all_to_all(50, 20))
    assert _waits(report) == [(20, 30, 0), (20, 0, 0)]
    bare = _two_ranks([nccl(20, 50, "SendRecv")], [nccl(50, 20, "SendRecv")])
    assert _waits(bare) == [(0, 0, 50), (0, 0, 20)]


def test_sends_are_matched_with_their_receives() -> None:
    peers = {"Src Rank": 0, "Dst Rank": 1}
    send = all_reduce(0, 50, **peers) | {"name": "ncclDevKernel_SendRecv(x)"}
    send["args"] |= {"Collective name": "send"}
    receive = all_reduce(30, 20, **peers) | {"name": "ncclDevKernel_SendRecv(x)"}
    receive["args"] |= {"Collective name": "recv"}
    assert _waits(_two_ranks([send], [receive])) == [(20, 30, 0), (20, 0, 0)]


@pytest.mark.parametrize(
    ("kind", "ranks", "factor"),
    [
        (CollectiveKind.ALL_REDUCE, 2, 1.0),
        (CollectiveKind.ALL_REDUCE, 8, 1.75),
        (CollectiveKind.ALL_GATHER, 8, 0.875),
        (CollectiveKind.REDUCE_SCATTER, 8, 0.875),
        (CollectiveKind.ALL_TO_ALL, 8, 0.875),
        (CollectiveKind.BROADCAST, 8, 1.0),
        (CollectiveKind.BARRIER, 8, None),
    ],
)
def test_bus_bandwidth_is_that_of_nccls_tests(
    kind: CollectiveKind, ranks: int, factor: float | None
) -> None:
    assert bus_factor(kind, ranks) == factor


@needs_shared_traces
def test_an_all_reduce_of_6637568_floats_is_26_megabytes() -> None:
    """Section E of the reference answers: 2636.669 µs, 10.07 GB/s."""
    collectives = report_on("hta_nccl_a100.json.gz").ranks[0].summary.collectives
    found = next(each for each in collectives if each.duration_ns == 2_636_669)
    assert found.bytes == 6637568 * 4
    assert round(found.bytes / found.duration_ns, 2) == 10.07


def test_above_the_links_peak_no_bandwidth_is_shown() -> None:
    """4 MB in a microsecond are 4 TB/s."""
    device = {"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]}
    texts = [a_trace(all_reduce(0, 1), rank=rank, world_size=2, **device) for rank in (0, 1)]
    bandwidth = together(*texts).bandwidths[0]
    assert bandwidth.is_above_link
    assert bandwidth.bus_bytes_per_second is None
    unknown = [a_trace(all_reduce(0, 1), rank=rank, world_size=2) for rank in (0, 1)]
    assert together(*unknown).bandwidths[0].bus_bytes_per_second == 4e12


def test_traces_of_different_jobs_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"is of a job of 4 ranks, .* of 2; name traces of one"):
        together(a_trace(rank=0, world_size=2), a_trace(rank=1, world_size=4))


def test_two_traces_of_one_rank_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"is of rank 1, as .* is; name one trace of each rank"):
        together(a_trace(rank=1, world_size=2), a_trace(rank=1, world_size=2))


def test_communication_patterns_can_be_named() -> None:
    trace = read(a_trace(a_kernel(0, 10, "my_ring_exchange"), a_kernel(20, 5)))
    own = summarise(trace, Patterns(kernels=("my_ring",))).breakdown
    usual = summarise(trace).breakdown
    assert (own and own.communication_ns, usual and usual.communication_ns) == (10_000, 0)


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymkDevKernel_AllGather_LL",
        "void deep_ep::internode::dispatch<true, 4>(int4*)",
        "nvshmemi_transfer_rma",
        "void c10d::symmetric_memory::one_shot_all_reduce_kernel<c10::BFloat16>()",
    ],
)
def test_what_communicates_is_known_by_name(name: str) -> None:
    part = measured(a_trace(a_kernel(0, 10, name))).breakdown
    assert part is not None
    assert (part.communication_ns, part.compute_ns) == (10_000, 0)


def test_copies_between_gpus_communicate_and_other_copies_do_not() -> None:
    copies = [
        a_kernel(0, 10, "Memcpy PtoP (Device -> Device)", cat="gpu_memcpy"),
        a_kernel(10, 5, "Memcpy DtoH (Device -> Pinned)", cat="gpu_memcpy"),
    ]
    part = measured(a_trace(*copies)).breakdown
    assert part is not None
    assert (part.communication_ns, part.peer_copy_ns, part.memory_ns) == (10_000, 10_000, 5_000)
