"""Why code was compiled again, as a word that a metric can have for a label."""

import re
from collections import Counter

from torch._dynamo.utils import CompilationMetrics, get_compilation_metrics

from kopeck_exporter.names import RECOMPILE_REASONS

_REASONS = (
    ("shape", r"(size|rank) mismatch|\.size\(\)"),
    ("stride", r"stride mismatch|\.stride\(\)|\.storage_offset\(\)"),
    ("dtype", r"dtype mismatch"),
    ("grad_mode", r"requires_grad mismatch|GLOBAL_STATE changed:.*\bgrad_mode\b"),
    ("global_state", r"GLOBAL_STATE changed|___check_torch_function_mode_stack"),
    ("type", r"expected type of|___check_type_id"),
    ("object_identity", r"___check_obj_id|Duplicate tensors|got deallocated|^\S+ is "),
    ("value", r" (==|!=|<|<=|>|>=|in) "),
)
"""The first whose pattern a failed guard fits, as torch writes guards in 2.11 to 2.15."""


def recompile_reason(text: str | None) -> str:
    """One of RECOMPILE_REASONS, for torch's reason of a compilation; None is code that is new."""
    if text is None:
        return "new_code"
    guard = _failed_guard(text)
    return next((reason for reason, pattern in _REASONS if re.search(pattern, guard)), "other")


def _failed_guard(text: str) -> str:
    """Without the number of the compilation before it, and the line of code after it."""
    guard = re.sub(r"^\d+/\d+\S*: ", "", text)
    return re.split(r"\n|\s+# ", guard, maxsplit=1)[0].strip()


class RecompileReasons:
    """Counts the reasons of compilations from a moment on.

    torch keeps the last 64 compilations: those before are let go when `read` is called too late.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._last: CompilationMetrics | None = None

    def begin(self) -> None:
        """What was compiled until now is not counted."""
        self._counts.clear()
        self._new()

    def read(self) -> None:
        """Count what was compiled since the last time."""
        for compilation in self._new():
            self._counts[recompile_reason(compilation.recompile_reason)] += 1

    def by_reason(self, total: int) -> dict[str, int]:
        """Of `total` compilations; those that torch has let go are of another reason."""
        known = {reason: self._counts[reason] for reason in RECOMPILE_REASONS}
        return known | {"other": known["other"] + max(0, total - sum(known.values()))}

    def _new(self) -> list[CompilationMetrics]:
        """Of forwards: a backward is compiled with its forward, or for it."""
        kept = get_compilation_metrics()
        seen = [index for index, each in enumerate(kept) if each is self._last]
        self._last = kept[-1] if kept else None
        return [each for each in kept[seen[0] + 1 if seen else 0 :] if each.is_forward]
