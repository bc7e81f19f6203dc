"""What a user tells NCCL, and kopeck of NCCL's platform."""

from typing import ClassVar, Literal

from pydantic import Field

from kopeck.api.spec import Rule, Spec


class ConfigMapKey(Spec):
    """A key of a ConfigMap in the job's namespace."""

    name: str = Field(min_length=1, max_length=253, description="Of the ConfigMap.")
    key: str = Field(
        "topology.xml", min_length=1, max_length=253, description="Whose value is the file."
    )


class NcclSpec(Spec):
    """NCCL's environment. What is set here wins over whatever kopeck would choose."""

    platform: Literal[
        "auto",
        "aws-efa",
        "azure-nd",
        "azure-nc",
        "gcp-tcpxo",
        "gcp-gib",
        "oci",
        "coreweave",
        "rdma",
        "other",
    ] = Field(
        "auto",
        description="Whose rules hold for the nodes. auto reads it from those that the template"
        " selects; other adds nothing.",
    )
    topology: Literal["auto", "none", "configMap"] = Field(
        "auto",
        description="The topology file: of the nodes' instance type where pods need one, none, or"
        " that of topologyConfigMap.",
    )
    topology_config_map: ConfigMapKey | None = Field(
        None, description="A topology file of your own; it is checked and copied for each attempt."
    )
    env: dict[str, str] = Field(
        default={},
        max_length=64,
        description="Variables of NCCL and its plugins, such as NCCL_DEBUG, for all ranks. A"
        " warning event tells what costly ones cost.",
    )

    cel_rules: ClassVar = (
        Rule(
            "!has(self.env) || self.env.all(key, !key.startsWith('KOPECK_'))",
            "variables with the prefix KOPECK_ are kopeck's; use another name",
        ),
        Rule(
            "(has(self.topology) && self.topology == 'configMap') == has(self.topologyConfigMap)",
            "topologyConfigMap and topology configMap go together; write both or none of them",
        ),
        Rule(
            "!has(self.topologyConfigMap) || !has(self.env) || !('NCCL_TOPO_FILE' in self.env)",
            "NCCL_TOPO_FILE and topologyConfigMap name two topology files; write one of them",
        ),
    )
