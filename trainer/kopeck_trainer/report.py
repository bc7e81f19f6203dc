"""For a training loop of your own: tell kopeck what it does.

    from kopeck_trainer import report

    for batch in batches:
        loss = train(batch)
        report.step(samples=len(batch), loss=loss)
        if due:
            with report.phase("checkpoint"):
                save()

Outside kopeck both do nothing that can be seen. No torch is imported here.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kopeck_trainer.loop_reports import loop_reports


def step(*, samples: int, loss: float | None = None, tokens: int | None = None) -> None:
    """One optimizer step ended, in which this process took `samples` samples.

    The job's samples are counted as if all processes took as many. `loss` is a number: a tensor
    is better converted now and then than at every step. `tokens` are those of the samples. The
    first call ends the start-up.
    """
    loop_reports().step(samples=samples, loss=loss, tokens=tokens)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """What runs inside is accounted to `name`, a phase of `kopeck_exporter.names.PHASES`.

    Raises ValueError for another name.
    """
    with loop_reports().reporter.clock.during(name):
        yield
