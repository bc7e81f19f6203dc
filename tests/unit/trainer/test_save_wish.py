import re
from pathlib import Path

import pytest

from kopeck.api.names import ANNOTATION_CHECKPOINT_REQUEST, CHECKPOINT_REQUEST_PATTERN
from kopeck_trainer.checkpoint_request import ANNOTATION, checkpoint_request
from kopeck_trainer.save_wish import SaveWish


class Time:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def ask(annotations: Path, name: str) -> None:
    annotations.write_text(f'a="1"\nkopeck.dev/checkpoint-request="{name}"\nz="2"\n')


def test_nobody_wishes_without_a_reason() -> None:
    time = Time()
    wish = SaveWish(every_seconds=None, annotations=None, now=time)
    time.seconds += 1e6
    assert not wish.is_set


def test_the_interval_begins_anew_with_every_checkpoint() -> None:
    time = Time()
    wish = SaveWish(every_seconds=60, annotations=None, now=time)
    time.seconds += 59
    assert not wish.is_set
    assert wish.answered() is None  # by one that was due for its step
    time.seconds += 59
    assert not wish.is_set
    time.seconds += 1
    assert wish.is_set


def test_a_request_is_seen_in_a_second_and_answered_once(tmp_path: Path) -> None:
    time = Time()
    annotations = tmp_path / "annotations"
    wish = SaveWish(every_seconds=None, annotations=annotations, now=time)
    assert not wish.is_set
    ask(annotations, "resize-1")
    assert not wish.is_set
    time.seconds += 1
    assert wish.is_set
    assert wish.answered() == "resize-1"
    time.seconds += 1
    assert not wish.is_set
    ask(annotations, "resize-2")
    time.seconds += 1
    assert wish.is_set
    annotations.unlink()  # while the kubelet swaps it
    time.seconds += 1
    assert wish.is_set


@pytest.mark.parametrize("text", ["", "\xff", 'kopeck.dev/checkpoint-request=""', "request=1"])
def test_what_is_no_request_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "annotations").write_bytes(text.encode("latin-1"))
    assert checkpoint_request(tmp_path / "annotations") is None


@pytest.mark.parametrize("name", ["resize-7", "a", "A.b_c:1", "a" * 64, "a" * 65, "a b", "ä"])
def test_operator_and_trainer_agree_on_what_is_a_name(tmp_path: Path, name: str) -> None:
    ask(tmp_path / "annotations", name)
    is_name = re.fullmatch(CHECKPOINT_REQUEST_PATTERN, name) is not None
    assert checkpoint_request(tmp_path / "annotations") == (name if is_name else None)


def test_a_request_has_the_name_that_the_operator_knows() -> None:
    assert ANNOTATION == ANNOTATION_CHECKPOINT_REQUEST
