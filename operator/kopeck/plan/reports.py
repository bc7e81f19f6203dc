"""What trainers report, as far as it is what it should be.

A user's own program can write the termination message too. A field of the wrong kind is left out:
it must not stop the passes over its job, nor reach a status that the API server then refuses.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler
from pydantic.alias_generators import to_camel
from pydantic.functional_validators import WrapValidator

_INT64_MAX = 2**63 - 1
_END_OF_YEAR_9999_UNIX_SECONDS = 253_402_300_799


def _or_unknown(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


_OrUnknown = WrapValidator(_or_unknown)
_Count = Annotated[int | None, Field(ge=0, le=_INT64_MAX), _OrUnknown]
_Number = Annotated[float | None, Field(allow_inf_nan=False), _OrUnknown]
_UnixSeconds = Annotated[float | None, Field(ge=0, le=_END_OF_YEAR_9999_UNIX_SECONDS), _OrUnknown]
_Text = Annotated[str | None, _OrUnknown]
_Sentence = Annotated[str | None, Field(max_length=4096), _OrUnknown]


class _Reported(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", strict=True)


class _FirstFailure(_Reported):
    rank: _Count = None
    exit_code: _Count = None
    signal: _Text = None


class _Report(_Reported):
    step: _Count = None
    samples: _Count = None
    loss: _Number = None
    checkpoint_step: _Count = None
    checkpoint_request: _Text = None
    samples_per_second: _Number = None
    mfu: _Number = None
    compile_mode: _Text = None
    compile_decision: _Sentence = None
    numerics_mismatch: _Sentence = None
    compile_seconds: _Number = None
    graph_breaks: _Count = None
    recompiles: _Count = None
    eager_fallbacks: _Count = None
    nonfinite_losses: _Count = None
    loss_spikes: _Count = None
    reported_at: _UnixSeconds = None
    message: _Text = None
    first_failure: Annotated[_FirstFailure | None, _OrUnknown] = None


def trusted(report: Any) -> dict[str, Any]:
    """The known fields of a termination message or of /progress that are of the right kind."""
    if not isinstance(report, dict):
        return {}
    return _Report.model_validate(report).model_dump(by_alias=True, exclude_none=True)
