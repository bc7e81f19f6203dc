"""Lightning under kopeck: the callback is all that it takes.

As `spec.command: [python3, lightning_trainer.py]`, or here and now on a CPU. The image needs
`lightning`.
"""

import tempfile

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from kopeck_trainer.lightning_callback import ReportCallback


class Line(LightningModule):
    """Learns to add up its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 1)

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = batch
        return (self.inner(x) - y).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


def main() -> None:
    inputs = torch.randn(100, 6, generator=torch.Generator().manual_seed(0))
    samples = TensorDataset(inputs, inputs.sum(1, keepdim=True))
    with tempfile.TemporaryDirectory() as folder:
        Trainer(
            max_epochs=2,
            accumulate_grad_batches=2,
            log_every_n_steps=1,
            default_root_dir=folder,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[ReportCallback(), ModelCheckpoint(every_n_train_steps=5)],
        ).fit(Line(), DataLoader(samples, batch_size=8))


if __name__ == "__main__":
    main()
