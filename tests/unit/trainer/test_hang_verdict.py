from kopeck_trainer.flight_recorder import Collective
from kopeck_trainer.hang_verdict import Stance, stance_as_json, stance_from_json, verdict


def waiting(number: int) -> Stance:
    collective = Collective(name="gloo:all_reduce", group="default_pg", number=number)
    return Stance(collective=collective, place="optimizer_step.py:54 in run")


ELSEWHERE = Stance(collective=None, place="data.py:7 in read")


def test_the_rank_that_did_not_come_to_the_collective_is_named_with_its_place() -> None:
    assert verdict({0: waiting(7), 1: ELSEWHERE, 2: waiting(7)}, ranks=3) == (
        "rank 0 waits in gloo:all_reduce 7 of default_pg for rank 1 (at data.py:7 in read)"
    )


def test_a_rank_that_does_not_answer_and_one_that_is_behind_are_named() -> None:
    assert verdict({0: waiting(6), 1: waiting(7)}, ranks=3) == (
        "rank 1 waits in gloo:all_reduce 7 of default_pg for rank 2 (does not answer), "
        "rank 0 (in gloo:all_reduce 6 of default_pg)"
    )


def test_a_network_that_stands_still_has_no_guilty_rank() -> None:
    stances = {0: waiting(7), 1: waiting(7)}
    assert verdict(stances, ranks=2) == "all ranks wait in gloo:all_reduce 7 of default_pg"


def test_without_a_collective_each_place_is_told() -> None:
    assert verdict({0: ELSEWHERE}, ranks=2) == (
        "no rank waits in a collective: rank 0 is at data.py:7 in read, rank 1 does not answer"
    )


def test_of_many_missing_ranks_the_first_are_named() -> None:
    sentence = verdict({0: waiting(7)}, ranks=1000)
    assert sentence.endswith("rank 8 (does not answer), and 991 more")


def test_a_stance_survives_the_store() -> None:
    for stance in (waiting(3), ELSEWHERE):
        assert stance_from_json(stance_as_json(stance)) == stance
