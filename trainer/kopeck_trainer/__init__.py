"""The torch runtime of kopeck: compiled, sharded training with the settings of a TrainingJob.

Here belong the launcher (PID 1 of the training container), the ranks that it starts, and the
`report` library for programs with a training loop of their own. Importing it imports no torch.
"""

from kopeck_trainer import report
from kopeck_trainer.config import TrainConfig
from kopeck_trainer.task import TrainingTask

__all__ = ["TrainConfig", "TrainingTask", "report"]
