"""What a pod needs of its job and its node, each need with its reason."""

from dataclasses import dataclass

from kopeck.topology.instance_type import InstanceType
from kopeck.topology.platform import NodePlatform
from kopeck.topology.resources import Request


@dataclass(frozen=True)
class TopologyFile:
    """The file of an instance type of the library, the variable that names it, and why."""

    variable: str
    path: str
    instance_type: InstanceType
    reason: str


@dataclass(frozen=True)
class ConfigMapMount:
    """A ConfigMap of the provider, to be copied into the job's and mounted as one file."""

    namespace: str
    name: str
    key: str
    path: str
    reason: str


@dataclass(frozen=True)
class Missing:
    """What the user's template or the cluster lacks, and what to do."""

    sentence: str


@dataclass(frozen=True)
class Note:
    """What is left to NCCL or done by the launcher in the pod, and why."""

    sentence: str


Need = TopologyFile | Request | ConfigMapMount | Missing | Note


@dataclass(frozen=True)
class PodNeeds:
    """All that one platform's rules say of a pod, in the order in which it is read."""

    platform: NodePlatform
    needs: tuple[Need, ...]

    @property
    def environment(self) -> dict[str, str]:
        return {each.variable: each.path for each in self.topology_files}

    @property
    def topology_files(self) -> list[TopologyFile]:
        return [each for each in self.needs if isinstance(each, TopologyFile)]

    @property
    def resources(self) -> dict[str, str]:
        """Quantities by resource name, for requests and limits alike."""
        return {each.resource: each.quantity for each in self.needs if isinstance(each, Request)}

    @property
    def config_maps(self) -> list[ConfigMapMount]:
        return [each for each in self.needs if isinstance(each, ConfigMapMount)]

    @property
    def missing(self) -> list[str]:
        return [each.sentence for each in self.needs if isinstance(each, Missing)]

    @property
    def notes(self) -> list[str]:
        return [each.sentence for each in self.needs if isinstance(each, Note)]
