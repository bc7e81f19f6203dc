"""What no pass does, whatever the cluster shows."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kopeck.plan.plan import plan
from kopeck.plan.pod_facts import PodFacts
from kopeck.plan.pods import Sidecar
from tests.builders import T0, a_job_view, ended, facts_of, waiting
from tests.unit.plan.life import EIGHT_GPUS, LONG_AGO, Life, nodes_on

messages = st.sampled_from(
    [None, "{}", "not JSON", '{"firstFailure": 7}', '{"samples": 99, "checkpointStep": 5}']
)


@st.composite
def trainer_statuses(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["ended", "waiting", "running", "nothing", "half"]))
    if kind == "ended":
        exit_code = draw(st.sampled_from([0, 1, 78, 137, 143, 180, 181, 182]))
        status = ended(exit_code, message=draw(messages))
        return status | {"phase": draw(st.sampled_from([status["phase"], "Running"]))}
    if kind == "waiting":
        return waiting(draw(st.sampled_from(["ErrImagePull", "ContainerCreating", "Odd"])))
    if kind == "nothing":
        phase = draw(st.sampled_from(["Pending", "Failed", "Succeeded", "Unknown"]))
        return {"phase": phase, "containerStatuses": []}
    return {}


@st.composite
def seen_pods(draw: st.DrawFn) -> list[PodFacts]:
    """Whatever a cluster may show: of three attempts, some pods missing, some in any state."""
    places = st.tuples(st.integers(0, 2), st.integers(0, 2))
    return [
        facts_of(
            worker,
            attempt,
            status=draw(trainer_statuses()),
            is_deleting=draw(st.booleans()),
            disruption=draw(st.none() | st.just("EvictionByEvictionAPI")),
            trainer_end_seen_at=draw(st.none() | st.just(LONG_AGO) | st.just(T0)),
        )
        for worker, attempt in draw(st.lists(places, unique=True, max_size=7))
    ]


sights = st.lists(st.tuples(seen_pods(), st.sampled_from([0, 4, 40, 4000])), max_size=8)


@given(
    sights,
    st.sampled_from([0, 1, 3]),
    st.sampled_from([{}, EIGHT_GPUS]),
    st.sampled_from([[], ["aws-p5"], ["azure-nd-h100-v5"], ["aws-p5", "hgx"]]),
)
def test_whatever_the_cluster_shows_no_pass_harms_what_it_must_not(
    history: list[tuple[list[PodFacts], int]],
    backoff_limit: int,
    spec: dict[str, Any],
    nodes: list[str],
) -> None:
    life = Life(a_job_view(runPolicy={"backoffLimit": backoff_limit}, **spec))
    for pods, seconds in history:
        life.now += timedelta(seconds=seconds)
        life.pods, life.nodes = pods, nodes_on(*nodes)
        before = life.status
        step = life.step()
        assert step == life.step(), "a crash repeats the step"
        assert step.status.attempt >= before.attempt
        assert step.status.restarts.failures >= before.restarts.failures
        assert step.status.restarts.total >= before.restarts.total
        assert step.status.restarts.failures <= backoff_limit + 1
        assert all(attempt < before.attempt for attempt in step.old_attempts)
        assert not step.ended_pods or before.phase == "Failed"
        known = {(str(pod.attempt), str(pod.worker)) for pod in pods}
        for manifest in step.pods:
            labels = manifest["metadata"]["labels"]
            assert labels["kopeck.dev/attempt"] == str(before.attempt), "status comes first"
            place = (labels["kopeck.dev/attempt"], labels["kopeck.dev/worker"])
            assert place not in known, "a pod that exists is not made again"
            decided = before.effective is not None and before.effective.nccl is not None
            assert decided == bool(spec), "a decision comes before pods with GPUs"
        if before.phase in ("Complete", "Failed"):
            assert step.status.phase == before.phase
        life.write(step.status)


@given(seen_pods(), st.permutations(range(7)))
def test_the_order_of_pods_does_not_matter(pods: list[PodFacts], order: list[int]) -> None:
    life = Life()
    life.go_on()
    shuffled = [pods[index] for index in order if index < len(pods)]
    one = plan(life.job, pods, Sidecar("exporter:1"), T0)
    other = plan(life.job, shuffled, Sidecar("exporter:1"), T0)
    assert one.status == other.status
    assert one.pods == other.pods
