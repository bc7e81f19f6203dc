"""AdamW (Loshchilov and Hutter, 2019) of one tensor, in one pass over its memory, by Triton."""

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
"""Elements of one program: 16 to a thread, in four loads of 16 bytes from each fp32 tensor."""


def adamw(
    master: Tensor,
    gradient: Tensor,
    averages: tuple[Tensor, Tensor],
    working: Tensor | None,
    *,
    factor: Tensor,
    corrections: Tensor,
    index: int,
    learning_rate: float,
    betas: tuple[float, float],
    epsilon: float,
    weight_decay: float,
) -> None:
    """Update `master`, its two moving `averages` and, if there is one, its `working` copy.

    All are contiguous and of one shape; `gradient` and `working` of any dtype, the others fp32.
    The gradient is multiplied by the scalar `factor` as it is read; NaN leaves all as it is.
    `corrections[:, index]` are 1 - beta ** step for both betas, fp32.
    """
    size = master.numel()
    beta1, beta2 = betas
    _update[(triton.cdiv(size, BLOCK),)](
        master,
        gradient,
        *averages,
        master if working is None else working,
        factor,
        corrections,
        corrections.shape[1],
        index,
        size,
        learning_rate,
        1 - beta1,  # here, because fp32 has too few digits for it
        beta2,
        1 - beta2,
        epsilon,
        1 - learning_rate * weight_decay,
        HAS_WORKING=working is not None,
        BLOCK=BLOCK,
    )


@triton.jit(do_not_specialize=["count", "index"])
def _update(
    master_ptr,
    gradient_ptr,
    mean_ptr,
    square_ptr,
    working_ptr,
    factor_ptr,
    corrections_ptr,
    count,
    index,
    size,
    learning_rate,
    one_minus_beta1,
    beta2,
    one_minus_beta2,
    epsilon,
    decay,
    HAS_WORKING: tl.constexpr,
    BLOCK: tl.constexpr,
):
    factor = tl.load(factor_ptr)
    if factor == factor:  # noqa: PLR0124  not NaN
        mean_correction = tl.load(corrections_ptr + index)
        square_correction = tl.load(corrections_ptr + count + index)
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = at < size
        gradient = tl.load(gradient_ptr + at, mask=inside).to(tl.float32) * factor
        master = tl.load(master_ptr + at, mask=inside)
        mean = tl.load(mean_ptr + at, mask=inside)
        square = tl.load(square_ptr + at, mask=inside)
        mean += one_minus_beta1 * (gradient - mean)
        square = beta2 * square + one_minus_beta2 * gradient * gradient
        denominator = tl.sqrt(square / square_correction) + epsilon
        master = master * decay - learning_rate / mean_correction * mean / denominator
        tl.store(master_ptr + at, master, mask=inside)
        tl.store(mean_ptr + at, mean, mask=inside)
        tl.store(square_ptr + at, square, mask=inside)
        if HAS_WORKING:
            tl.store(working_ptr + at, master.to(working_ptr.dtype.element_ty), mask=inside)
