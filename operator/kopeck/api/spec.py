"""What all parts of a TrainingJob's schema share: camelCase, no unknown fields, CEL rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


@dataclass(frozen=True)
class Rule:
    """A CEL rule that the API server checks, with the sentence that a user reads.

    `message_expression` is CEL too: it computes the sentence, `message` stands in if it fails.
    """

    rule: str
    message: str
    message_expression: str | None = None
    field_path: str | None = None

    def as_validation(self) -> dict[str, str]:
        """The entry of `x-kubernetes-validations`."""
        entry = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "fieldPath": self.field_path,
        }
        return {key: value for key, value in entry.items() if value is not None}


class Spec(BaseModel):
    """A part of the API: immutable, its JSON in camelCase, unknown fields refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, extra="forbid", frozen=True
    )
    cel_rules: ClassVar[Sequence[Rule]] = ()


class OpenSpec(Spec):
    """A part that keeps what it does not know, such as a piece of a pod template."""

    model_config = ConfigDict(extra="allow")
