"""Why the compiler left code to Python, and why it compiled again: each cause is said once."""

from collections.abc import Callable, Iterator
from pathlib import Path

from torch._dynamo.utils import counters, get_compilation_metrics

from kopeck_trainer.compile_watch import CompileWatch

_TOLD_OF_A_BREAK = ("Explanation:", "Hint:")


class Causes:
    """torch keeps both for its own reports; the names exist in 2.11 to 2.15."""

    def __init__(self, watch: CompileWatch, say: Callable[[str], None]) -> None:
        self._watch = watch
        self._say = say
        self._events = 0
        self._said: set[str] = set()

    def tell(self) -> None:
        """Say what is new. Before the warm-up ends compiling again is intended, and not said."""
        if self._watch.events == self._events:
            return
        self._events = self._watch.events
        self._tell_new(_graph_breaks(), aloud=True)
        self._tell_new(_recompiles(), aloud=self._watch.is_warm)

    def _tell_new(self, sentences: Iterator[str], *, aloud: bool) -> None:
        for sentence in sentences:
            if sentence not in self._said:
                self._said.add(sentence)
                if aloud:
                    self._say(sentence)


def _graph_breaks() -> Iterator[str]:
    for text in counters["graph_break"]:
        title, *lines = text.splitlines()
        told = [line.strip() for line in lines if line.strip().startswith(_TOLD_OF_A_BREAK)]
        yield " ".join([f"graph break: {title}.", *told[: len(_TOLD_OF_A_BREAK)]])


def _recompiles() -> Iterator[str]:
    for compilation in get_compilation_metrics():
        if reason := compilation.recompile_reason:
            file = Path(compilation.co_filename or "").name
            where = f"{compilation.co_name} ({file}:{compilation.co_firstlineno})"
            yield f"compiled again: {where}, {reason.partition(': ')[2] or reason}"
