"""The name of one TrainingJob among all that ever were."""

from typing import NamedTuple


class JobKey(NamedTuple):
    """Names a job: the uid tells it from an earlier one of the same name."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
