"""The most that a GPU can compute, by the name that its driver gives it."""

from kopeck_trainer.config import Precision

_TERA = 1e12
_DENSE_BF16 = (
    ("A100", 312 * _TERA),
    ("L40S", 362 * _TERA),
    ("H100 NVL", 835 * _TERA),
    ("H100 PCIe", 756 * _TERA),
    ("H100", 989 * _TERA),
    ("H200", 989 * _TERA),
    ("GB200", 2500 * _TERA),
    ("B200", 2250 * _TERA),
)
"""The first name that fits counts. From NVIDIA's data sheets, which print twice as much: with
sparsity. torchtitan has the same numbers."""


def peak_flops(device_name: str, precision: Precision) -> float | None:
    """Operations per second of dense matrix products; None where it is unknown.

    In fp32 it depends on what torch may round to TF32, and in fp8 on which products are, so no
    number is right for all.
    """
    if precision != "bf16":
        return None
    return next((peak for name, peak in _DENSE_BF16 if name in device_name), None)
