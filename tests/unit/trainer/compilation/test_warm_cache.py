"""The second attempt of a real training finds compiled what the first has compiled."""

from typing import Any

from tests.unit.trainer.local_workers import LocalJob


def end_of_attempt(job: LocalJob, config: dict[str, Any], attempt: int, workers: int) -> Any:
    job.environ["TORCHINDUCTOR_CACHE_DIR"] = str(job.folder / f"node-{attempt}")
    codes = job.run(config, workers=workers, attempt=attempt)
    assert codes == [0] * workers, job.workers[0].output
    return job.workers[0].termination()


def test_another_attempt_compiles_in_a_third_of_the_time_whatever_its_world_size(
    job: LocalJob,
) -> None:
    job.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # in the rank, whose CPU time is read
    compiled = {"mode": "default", "cache": str(job.folder / "cache"), "numericsCheck": False}
    config = job.config(entrypoint="timed:build", compile=compiled, checkpoint=None)
    cold = end_of_attempt(job, config, attempt=0, workers=1)
    warm = end_of_attempt(job, config, attempt=1, workers=1)
    resized = end_of_attempt(job, config, attempt=2, workers=2)
    seconds = [each["compileSeconds"] for each in (cold, warm, resized)]
    told = "compile seconds of CPU: cold {:.2f}, warm {:.2f}, at 2 workers {:.2f}"
    print(told.format(*seconds))  # noqa: T201
    assert seconds[0] >= 3 * seconds[1]
    assert seconds[0] >= 3 * seconds[2]
    misses = [each["compileCacheMisses"] for each in (cold, warm, resized)]
    assert misses[0] > 0
    assert misses[1:] == [0, 0]
    assert resized["compileCacheHits"] == warm["compileCacheHits"] > 0
