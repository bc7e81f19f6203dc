"""How many pods a job has, and what one of them is."""

from typing import Any, ClassVar

from pydantic import Field

from kopeck.api.names import EXPORTER_CONTAINER, GPU_RESOURCE, MAX_WORKERS
from kopeck.api.spec import OpenSpec, Rule, Spec


class ResourceList(Spec):
    """Requests and limits of the training container, as in any container."""

    requests: dict[str, int | str] = Field(default={}, description="As of a container.")
    limits: dict[str, int | str] = Field(default={}, description="As of a container.")


class TemplateContainer(OpenSpec):
    """A container of the template: `trainer` is merged over ours, others run beside it."""

    name: str = Field(min_length=1, max_length=63, description="trainer, or your own name.")
    image: str | None = Field(None, max_length=1024, description="Of your own containers only.")
    command: list[str] | None = Field(None, description="Of your own containers only.")
    args: list[str] | None = Field(None, description="Of your own containers only.")

    cel_rules: ClassVar = (
        Rule(
            "self.name != 'trainer' || !(has(self.image) || has(self.command) || has(self.args))",
            "kopeck starts the container trainer itself; set image, command and args in spec",
        ),
        Rule(
            f"self.name != '{EXPORTER_CONTAINER}'",
            f"{EXPORTER_CONTAINER} is kopeck's own sidecar; give your container another name",
        ),
    )


class PodClaim(OpenSpec):
    """A claim on devices, as in any pod."""

    name: str = Field(min_length=1, max_length=63, description="By which containers name it.")


class TemplatePodSpec(OpenSpec):
    """A partial pod spec, merged over ours: volumes, tolerations, nodeSelector, sidecars, env."""

    containers: list[TemplateContainer] = Field(
        default=[], max_length=16, description="Merged by name; the training one is trainer."
    )
    init_containers: list[TemplateContainer] = Field(
        default=[], max_length=16, description="Run before training, merged by name."
    )
    resource_claims: list[PodClaim] = Field(default=[], max_length=16, description="As of a pod.")
    hostname: str | None = Field(None, description="Set by kopeck.")
    subdomain: str | None = Field(None, description="Set by kopeck.")
    restart_policy: str | None = Field(None, description="Set by kopeck.")

    cel_rules: ClassVar = (
        Rule(
            "!has(self.hostname) && !has(self.subdomain)",
            "kopeck sets hostname and subdomain, by which workers find each other; remove them",
        ),
        Rule(
            "!has(self.restartPolicy)",
            "kopeck restarts all workers together; remove restartPolicy and see runPolicy",
        ),
    )


class TemplateMetadata(Spec):
    """Labels and annotations that the pods get beside kopeck's own."""

    labels: dict[str, str] = Field(default={}, max_length=64, description="Of the pods.")
    annotations: dict[str, str] = Field(default={}, max_length=64, description="Of the pods.")

    cel_rules: ClassVar = (
        Rule(
            "!has(self.labels) || self.labels.all(key, !key.startsWith('kopeck.dev/'))",
            "labels under kopeck.dev/ are kopeck's; use a prefix of your own",
        ),
    )


class PodTemplate(Spec):
    """A partial pod template that is merged over kopeck's own."""

    metadata: TemplateMetadata | None = Field(None, description="Labels and annotations.")
    spec: TemplatePodSpec | None = Field(None, description="A partial pod spec.")


class WorkersSpec(Spec):
    """How many pods a job has, and the size of one."""

    replicas: int = Field(
        ge=1, le=MAX_WORKERS, description="Pods to run. The scale subresource sets it too."
    )
    gpus_per_worker: int = Field(0, ge=0, le=64, description="GPUs of one pod; 0 trains on CPU.")
    gpu_resource: str = Field(
        GPU_RESOURCE, max_length=253, description="The extended resource that GPUs are."
    )
    processes_per_worker: int | None = Field(
        None, ge=1, le=64, description="Ranks in one pod. Default: its GPUs, else 1."
    )
    resources: ResourceList | None = Field(None, description="Of the training container.")
    template: PodTemplate | None = Field(None, description="Merged over kopeck's pod template.")

    @property
    def processes(self) -> int:
        """Ranks in one pod."""
        return self.processes_per_worker or self.gpus_per_worker or 1

    @property
    def has_nvidia_gpus(self) -> bool:
        """Whether the ranks talk by NCCL."""
        return self.gpus_per_worker > 0 and self.gpu_resource == GPU_RESOURCE

    @property
    def template_spec(self) -> dict[str, Any]:
        """The user's partial pod spec as JSON; empty if there is none."""
        if self.template is None or self.template.spec is None:
            return {}
        return self.template.spec.model_dump(by_alias=True, exclude_unset=True)
