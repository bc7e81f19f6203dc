"""Every name that kopeck shares with the cluster: group, labels, annotations, containers, ports."""

GROUP = "kopeck.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "TrainingJob"
PLURAL = "trainingjobs"
SHORT_NAME = "tj"

LABEL_JOB = "kopeck.dev/job"
LABEL_JOB_UID = "kopeck.dev/job-uid"
LABEL_ATTEMPT = "kopeck.dev/attempt"
LABEL_WORKER = "kopeck.dev/worker"
LABEL_REVISION = "kopeck.dev/revision"
ANNOTATION_HOURLY_RATE = "kopeck.dev/hourly-rate-dollars"
ANNOTATION_CHECKPOINT_REQUEST = "kopeck.dev/checkpoint-request"
"""On a TrainingJob by its user, and from there on the pod of worker 0."""
CHECKPOINT_REQUEST_PATTERN = "[A-Za-z0-9._:-]{1,64}"

GPU_RESOURCE = "nvidia.com/gpu"
"""Of those GPUs that NCCL drives."""

TRAINER_CONTAINER = "trainer"
EXPORTER_CONTAINER = "kopeck-exporter"
EXPORTER_PORT = 9401
EXPORTER_PORT_NAME = "metrics"

# `<job>-<uid5>-a99999-w9999` must stay a DNS label of 63 characters.
MAX_JOB_NAME_LENGTH = 44
JOB_NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
MAX_WORKERS = 9_999
UID_PREFIX_LENGTH = 5


def service_name(job: str, uid: str) -> str:
    return f"{job}-{uid[:UID_PREFIX_LENGTH]}"


def pod_name(job: str, uid: str, attempt: int, worker: int) -> str:
    return f"{service_name(job, uid)}-a{attempt}-w{worker}"


def revision_config_name(job: str, uid: str, revision: str) -> str:
    return f"{service_name(job, uid)}-{revision}"


def nccl_config_name(job: str, uid: str, digest: str) -> str:
    return f"{service_name(job, uid)}-nccl-{digest}"
