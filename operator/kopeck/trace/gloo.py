"""What ran on a CPU that trains over gloo, by the kinds that a GPU's time has.

torch announces a collective of gloo from the moment at which it begins to run until it has ended,
in a thread of gloo's; the reduce-scatter of FSDP is an all-reduce there.
"""

import re

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import Category, Events
from kopeck.trace.kinds import GpuEvents, Kind

_COLLECTIVE = re.compile(r"gloo:")
_OPERATOR = re.compile(r"aten::")
_COMPILED = re.compile(r"## Call CompiledFxGraph ")
"""Around the code that Inductor made of a graph; FSDP's waiting is outside of it."""


def gloo_events(events: Events) -> GpuEvents:
    """Collectives of gloo communicate; torch's own operators and compiled code compute."""
    collectives = _named(events, Category.ANNOTATION, _COLLECTIVE)
    computing = np.concatenate(
        (
            _named(events, Category.OPERATOR, _OPERATOR),
            _named(events, Category.ANNOTATION, _COMPILED),
            _named(events, Category.OPERATOR, _COMPILED),
        )
    )
    kinds = np.full(collectives.size + computing.size, Kind.COMPUTE, dtype=np.int8)
    kinds[: collectives.size] = Kind.COMMUNICATION
    return GpuEvents(np.concatenate((collectives, computing)), kinds)


def _named(events: Events, category: Category, pattern: re.Pattern[str]) -> npt.NDArray[np.intp]:
    ids = [number for number, name in enumerate(events.names) if pattern.match(name)]
    rows = events.rows(category)
    return rows[np.isin(events.name_ids[rows], ids)]
