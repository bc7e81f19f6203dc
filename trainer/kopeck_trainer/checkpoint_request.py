"""A checkpoint that the operator asks for, by an annotation of worker 0's pod."""

import re
from pathlib import Path

ANNOTATION = "kopeck.dev/checkpoint-request"

_LINE = re.compile(rf'^{re.escape(ANNOTATION)}="([A-Za-z0-9._:-]{{1,64}})"$', re.MULTILINE)


def checkpoint_request(annotations: Path) -> str | None:
    """The name of the newest request; None without one.

    The kubelet writes one `key="value"` line per annotation and swaps the file as a whole. A value
    that is no plain name is no request: who wrote it waits for an acknowledgement in vain.
    """
    try:
        text = annotations.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    line = _LINE.search(text)
    return line[1] if line else None
