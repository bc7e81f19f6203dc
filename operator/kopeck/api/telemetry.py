"""How the GPUs of a job are read."""

from pydantic import Field

from kopeck.api.spec import Spec


class TelemetrySpec(Spec):
    """Where the GPU sampler runs. Without anything here it runs in the training container."""

    gpu_claim: str | None = Field(
        None,
        min_length=1,
        max_length=63,
        description="The name of the claim, of workers.template.spec.resourceClaims, that the GPUs"
        " come by: the sidecar shares it and reads them. Not for GPUs of a device plugin.",
    )
