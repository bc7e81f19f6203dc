"""Hugging Face's Trainer under kopeck: the callback is all that it takes.

As `spec.command: [python3, hugging_face_trainer.py]`, or here and now on a CPU. The image needs
`transformers` and `accelerate`.
"""

import tempfile

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments

from kopeck_trainer.hugging_face import ReportCallback


class Line(nn.Module):
    """Learns to add up its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 1)

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        output = self.inner(x)
        return {"loss": (output - labels).square().mean(), "logits": output}


def main() -> None:
    inputs = torch.randn(100, 6, generator=torch.Generator().manual_seed(0))
    samples = [{"x": x, "labels": x.sum(0, keepdim=True)} for x in inputs]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            num_train_epochs=2,
            logging_steps=1,
            save_steps=5,
            eval_strategy="steps",
            eval_steps=5,
            use_cpu=not torch.cuda.is_available(),
            report_to="none",
            disable_tqdm=True,
        )
        Trainer(
            model=Line(),
            args=arguments,
            train_dataset=samples,
            eval_dataset=samples[:16],
            callbacks=[ReportCallback()],
        ).train()


if __name__ == "__main__":
    main()
