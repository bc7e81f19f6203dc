"""Which GPUs of this machine a worker has: in a cluster each pod has its own."""

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


def devices_of(worker: int, gpus_per_worker: int, visible: str | None) -> dict[str, str]:
    """The environment that shows a worker its GPUs and no others; empty without GPUs.

    `visible` is this process's own CUDA_VISIBLE_DEVICES: indices or UUIDs, None for all GPUs.
    """
    if gpus_per_worker == 0:
        return {}
    first, last = worker * gpus_per_worker, (worker + 1) * gpus_per_worker
    own = [str(index) for index in range(last)] if visible is None else visible.split(",")
    return {VISIBLE_DEVICES: ",".join(device.strip() for device in own[first:last])}
