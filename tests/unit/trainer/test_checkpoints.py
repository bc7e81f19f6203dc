"""Checkpoints on disk: whole or invisible, fenced, damaged, too many."""

import shutil
import threading
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import distributed as dist
from torch import nn
from torch.utils._pytree import tree_map_only

from kopeck_trainer.checkpoint.background import BackgroundSaver
from kopeck_trainer.checkpoint.fence import inside_fence, raise_fence
from kopeck_trainer.checkpoint.folder import CheckpointName, complete_checkpoints
from kopeck_trainer.checkpoint.loading import load_newest, open_folder
from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.checkpoint.saving import Saver
from kopeck_trainer.checkpoint.state import TrainedState
from kopeck_trainer.errors import AttemptReplacedError, ConfigurationError
from tests.unit.trainer.builders import toy
from tests.unit.trainer.on_ranks import on_ranks
from tests.unit.trainer.small_trainings import sharded, the_toy, whole
from tests.waiting import eventually

TOY_STEPS = 3


def a_state(weight: float, width: int = 2) -> TrainedState:
    model = nn.Linear(width, 1)
    nn.init.constant_(model.weight, weight)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    torch.autograd.backward(model(torch.ones(width)).sum())
    optimizer.step()
    return TrainedState(model=model, optimizer=optimizer)


def weight_of(state: TrainedState) -> float:
    return state.model.get_parameter("weight")[0, 0].item()


def save(folder: Path, step: int, *, attempt: int = 0, keep: int = 2) -> None:
    saver = Saver(folder=folder, attempt=attempt, keep=keep)
    saver.save(a_state(weight=float(step)).read(), Position(step=step, samples=step * 8))


def save_some(folder: Path, steps: list[int], keep: int) -> None:
    open_folder(folder, 0)
    for step in steps:
        save(folder, step, keep=keep)


def resume(folder: Path, attempt: int) -> tuple[Position | None, float]:
    state = a_state(weight=-1.0)
    open_folder(folder, attempt)
    return load_newest(folder, state), weight_of(state)


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints" / "uid"


@pytest.fixture
def meeting(tmp_path: Path) -> Path:
    (tmp_path / "meeting").mkdir()
    return tmp_path / "meeting"


def test_the_newest_is_loaded_and_old_ones_are_removed(folder: Path, meeting: Path) -> None:
    on_ranks(2, save_some, meeting, folder, [10, 20, 100], 2)
    assert visible(folder) == ["step-100.a0", "step-20.a0"]
    loaded = on_ranks(2, resume, meeting, folder, 1)
    assert loaded == [(Position(step=100, samples=800), 100.0)] * 2


@pytest.mark.parametrize("damage", ["flipped", "cut", "missing", "manifest", "metadata"])
def test_a_damaged_one_is_skipped_and_all_comes_from_the_one_before(
    folder: Path, meeting: Path, damage: str
) -> None:
    on_ranks(1, save_some, meeting, folder, [10, 20], 2)
    newest = folder / "step-20.a0"
    shards = newest / "__0_0.distcp"
    content = bytearray(shards.read_bytes())
    if damage == "flipped":
        content[-10] ^= 1
        shards.write_bytes(content)
    elif damage == "cut":
        shards.write_bytes(content[:-1])
    elif damage == "missing":
        shards.unlink()
    elif damage == "manifest":
        (newest / "manifest.json").write_text('{"step": 20}')
    else:
        (newest / ".metadata").write_bytes(b"")
    assert on_ranks(2, resume, meeting, folder, 1) == [(Position(step=10, samples=80), 10.0)] * 2
    assert visible(folder) == ["step-10.a0", "step-20.a0.bad"]


def test_with_nothing_but_damage_training_starts_anew(folder: Path, meeting: Path) -> None:
    on_ranks(1, save_some, meeting, folder, [10], 2)
    (folder / "step-10.a0" / "__0_0.distcp").unlink()
    assert on_ranks(1, resume, meeting, folder, 1) == [(None, -1.0)]


def test_half_a_checkpoint_is_invisible_and_cleared_away(folder: Path, meeting: Path) -> None:
    on_ranks(1, save_some, meeting, folder, [10], 2)
    shutil.copytree(folder / "step-10.a0", folder / "step-20.a0.tmp")
    shutil.copytree(folder / "step-10.a0", folder / "step-30.a0")
    (folder / "step-30.a0" / "manifest.json").unlink()
    assert on_ranks(1, resume, meeting, folder, 1) == [(Position(step=10, samples=80), 10.0)]
    assert "step-20.a0.tmp" not in visible(folder)


def resume_another_model(folder: Path) -> str:
    open_folder(folder, 1)
    with pytest.raises(ConfigurationError) as refusal:
        load_newest(folder, a_state(weight=0.0, width=3))
    return str(refusal.value)


def test_good_checkpoints_of_another_model_are_refused_and_kept(
    folder: Path, meeting: Path
) -> None:
    on_ranks(1, save_some, meeting, folder, [10, 20], 2)
    for sentence in on_ranks(2, resume_another_model, meeting, folder):
        assert sentence.startswith("spec.training.checkpoint.path: step-20.a0 does not fit")
    assert visible(folder) == ["step-10.a0", "step-20.a0"]


def save_after_being_replaced(folder: Path) -> None:
    open_folder(folder, 0)
    save(folder, 10)
    if torch.distributed.get_rank() == 0:
        raise_fence(folder, 1)
    with pytest.raises(AttemptReplacedError):
        save(folder, 20)


def test_an_older_attempt_may_not_commit(folder: Path, meeting: Path) -> None:
    on_ranks(2, save_after_being_replaced, meeting, folder)
    assert [str(name) for name in complete_checkpoints(folder)] == ["step-10.a0"]


def everything(state: TrainedState) -> Any:
    """Weights and optimizer, of whole tensors from the shards of all ranks."""
    return tree_map_only(torch.Tensor, lambda tensor: whole(tensor).tolist(), state.read())


def a_toy_state() -> TrainedState:
    task = the_toy()
    model = sharded(task)
    return TrainedState(model=model, optimizer=task.optimizer(model.named_parameters()))


def train_and_save_the_toy(folder: Path) -> Any:
    open_folder(folder, 0)
    state = a_toy_state()
    for step in range(TOY_STEPS):
        torch.autograd.backward(state.model(torch.full((2, toy.WIDTH), 1.0 + step)).square().sum())
        state.optimizer.step()
        state.optimizer.zero_grad()
    position = Position(step=TOY_STEPS, samples=TOY_STEPS * 8)
    Saver(folder=folder, attempt=0, keep=2).save(state.read(), position)
    return everything(state)


def resume_the_toy(folder: Path, attempt: int) -> Any:
    open_folder(folder, attempt)
    state = a_toy_state()
    load_newest(folder, state)
    return everything(state)


def test_weights_and_optimizer_are_the_same_to_the_bit_on_more_and_on_fewer_ranks(
    folder: Path, meeting: Path
) -> None:
    saved, _ = on_ranks(2, train_and_save_the_toy, meeting, folder)
    state = saved["optimizer"]["state"]["head.weight"]
    assert state["step"] == TOY_STEPS
    assert any(state["exp_avg"][0])
    for attempt, ranks in enumerate([1, 3], start=1):
        assert on_ranks(ranks, resume_the_toy, meeting, folder, attempt) == [saved] * ranks


def save_while_training_goes_on(folder: Path) -> None:
    open_folder(folder, 0)
    group = cast("dist.ProcessGroup", dist.new_group(backend="gloo"))
    background = BackgroundSaver(Saver(folder=folder, attempt=0, keep=2, group=group))
    state = a_state(weight=10.0)
    committed: list[str] = []
    for step in (10, 20):
        background.start(
            state.read(), Position(step=step, samples=step * 8), lambda: committed.append("one")
        )
        background.await_copy()
        nn.init.constant_(state.model.get_parameter("weight"), 20.0)
        dist.barrier()
    background.finish()
    assert len(committed) == 2
    raise_fence(folder, 1)
    background.start(state.read(), Position(step=30, samples=240), lambda: None)
    with pytest.raises(AttemptReplacedError):
        background.finish()


def test_in_the_background_a_copy_is_saved_as_it_was(folder: Path, meeting: Path) -> None:
    on_ranks(2, save_while_training_goes_on, meeting, folder)
    assert on_ranks(1, resume, meeting, folder, 1) == [(Position(step=20, samples=160), 20.0)]
    shutil.rmtree(folder / "step-20.a0")
    assert on_ranks(1, resume, meeting, folder, 1) == [(Position(step=10, samples=80), 10.0)]


def test_a_forward_changes_nothing_in_a_snapshot() -> None:
    model = nn.BatchNorm1d(2)
    state = TrainedState(model=model, optimizer=torch.optim.AdamW(model.parameters()))
    snapshot, shared = state.snapshot()["model"], state.read()["model"]
    model(torch.ones(3, 2) * 100)
    assert shared["running_mean"].max() > 1
    assert snapshot["running_mean"].tolist() == [0, 0]
    assert snapshot["num_batches_tracked"] == 0
    assert snapshot["weight"].data_ptr() == model.weight.data_ptr()


def test_an_older_attempt_may_not_even_start(tmp_path: Path) -> None:
    raise_fence(tmp_path, 12)
    raise_fence(tmp_path, 12)  # the same one, after its container started again
    with pytest.raises(AttemptReplacedError, match="attempt 9 was replaced by attempt 12"):
        raise_fence(tmp_path, 9)


def test_a_newer_attempt_waits_for_a_commit_under_way(tmp_path: Path) -> None:
    raised = threading.Event()

    def newer() -> None:
        raise_fence(tmp_path, 1)
        raised.set()

    with inside_fence(tmp_path, 0):
        threading.Thread(target=newer).start()
        eventually(lambda: somebody_waits_for(tmp_path / "fence"))
        assert not raised.is_set()
    assert raised.wait(timeout=30)


def somebody_waits_for(file: Path) -> None:
    """By the kernel's list of locks, in which who waits has an arrow."""
    waiting = [line for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
    assert any(f":{file.stat().st_ino} " in line for line in waiting)


def test_names_sort_by_number() -> None:
    names = [CheckpointName(9, 3), CheckpointName(10, 1), CheckpointName(10, 0)]
    assert [str(name) for name in sorted(names)] == ["step-9.a3", "step-10.a0", "step-10.a1"]


def refuse_folder(folder: Path) -> str:
    with pytest.raises(ConfigurationError) as refusal:
        open_folder(folder, 0)
    return str(refusal.value)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, meeting: Path) -> None:
    (tmp_path / "file").write_text("")
    for sentence in on_ranks(2, refuse_folder, meeting, tmp_path / "file" / "uid"):
        assert sentence.startswith("spec.training.checkpoint.path: ")
