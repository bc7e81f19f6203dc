"""What a user tells NCCL."""

from typing import ClassVar

from pydantic import Field

from kopeck.api.spec import Rule, Spec


class NcclSpec(Spec):
    """NCCL's environment. What is set here wins over whatever kopeck would choose."""

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
    )
