from hypothesis import given
from hypothesis import strategies as st

from kopeck_trainer.permutation import sample_id
from kopeck_trainer.schedule import micro_batch_positions

LENGTH = 37


@given(length=st.integers(1, 300), epoch=st.integers(0, 5), seed=st.integers(0, 2**40))
def test_every_epoch_reads_every_sample_once(length: int, epoch: int, seed: int) -> None:
    positions = range(epoch * length, (epoch + 1) * length)
    assert sorted(sample_id(each, length, seed) for each in positions) == list(range(length))


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    def order(epoch: int, seed: int) -> list[int]:
        return [sample_id(epoch * LENGTH + offset, LENGTH, seed) for offset in range(LENGTH)]

    assert len({tuple(order(epoch, seed)) for epoch in range(3) for seed in range(3)}) == 9


def test_a_huge_data_set_needs_no_table() -> None:
    ids = {sample_id(position, 10**15, seed=1) for position in range(1000)}
    assert len(ids) == 1000
    assert max(ids) > 10**14


def test_ids_are_those_of_earlier_releases() -> None:
    """Another order would repeat and skip samples in jobs that resume after an update."""
    ids = [sample_id(position, 10, seed=0) for position in range(10)]
    assert ids == [1, 9, 0, 4, 7, 2, 8, 3, 5, 6]


def ids_of_step(consumed: int, ranks: int, global_batch: int = 12) -> list[list[int]]:
    """The sample ids of each rank in the step after `consumed` samples, micro-batches of 2."""
    return [
        [
            sample_id(position, LENGTH, seed=5)
            for index in range(global_batch // (2 * ranks))
            for position in micro_batch_positions(consumed, 2, index=index, rank=rank, ranks=ranks)
        ]
        for rank in range(ranks)
    ]


def test_from_two_ranks_to_one_to_three_each_step_has_exactly_the_next_samples() -> None:
    world_sizes = [2, 2, 1, 1, 3, 3, 3]
    resized = [ids_of_step(12 * step, ranks) for step, ranks in enumerate(world_sizes)]
    undisturbed = [sample_id(position, LENGTH, seed=5) for position in range(12 * 7)]
    for step, ids_by_rank in enumerate(resized):
        ids = sorted(each for ids in ids_by_rank for each in ids)
        assert ids == sorted(undisturbed[12 * step : 12 * (step + 1)])
