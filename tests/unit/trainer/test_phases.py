import threading

import pytest

from kopeck_exporter.names import PHASES
from kopeck_trainer.phases import UNDECIDED, PhaseClock


class Time:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_phases_add_up_to_the_wall_time() -> None:
    time = Time()
    clock = PhaseClock("startup", now=time)
    time.seconds += 3
    clock.switch("warmup")
    time.seconds += 1
    with clock.during("data_wait"):
        time.seconds += 2
        with clock.during("compile"):
            time.seconds += 10
    time.seconds += 0.5
    seconds = clock.seconds()
    expected = {"startup": 3, "warmup": 1.5, "data_wait": 2, "compile": 10}
    assert seconds == dict.fromkeys(PHASES, 0.0) | expected
    assert sum(seconds.values()) == time.seconds - Time.seconds


def test_time_before_the_clock_was_made_is_of_the_first_phase() -> None:
    time = Time()
    clock = PhaseClock("startup", now=time, since=time.seconds - 7)
    time.seconds += 3
    clock.switch("compute")
    time.seconds += 1
    assert (clock.seconds()["startup"], clock.seconds()["compute"]) == (10, 1)


def test_what_is_undecided_at_the_end_stays_with_the_phase_around_it() -> None:
    time = Time()
    clock = PhaseClock("compute", now=time)
    clock.enter(UNDECIDED)
    time.seconds += 2
    assert clock.decided_phase == "compute"
    assert clock.undecided_seconds == 2
    clock.leave()
    clock.end()
    time.seconds += 1
    seconds = clock.seconds()
    assert (seconds["compute"], seconds["idle"], clock.undecided_seconds) == (2, 1, 0)


def test_a_phase_that_raises_ends_too() -> None:
    clock = PhaseClock("compute")
    with pytest.raises(RuntimeError), clock.during("checkpoint"):
        raise RuntimeError
    assert clock.phase == "compute"


def test_a_phase_without_a_name_in_the_metrics_is_refused() -> None:
    clock = PhaseClock("compute")
    with pytest.raises(ValueError, match="there is no phase 'lunch'; use one of startup, "):
        clock.enter("lunch")
    assert clock.phase == "compute"


def test_reading_from_another_thread_loses_no_time() -> None:
    time = Time()
    clock = PhaseClock("compute", now=time)
    reader = threading.Thread(target=lambda: [clock.seconds() for _ in range(1000)])
    reader.start()
    for _ in range(1000):
        with clock.during("data_wait"):
            time.seconds += 1
    reader.join()
    assert sum(clock.seconds().values()) == 1000
