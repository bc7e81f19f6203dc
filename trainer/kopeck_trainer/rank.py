"""`python3 -m kopeck_trainer.rank`: one rank, started by the launcher."""

import os
import sys
import traceback

from kopeck_trainer import exit_codes
from kopeck_trainer.config import read_config
from kopeck_trainer.environment import rank_environment
from kopeck_trainer.errors import ConfigurationError, PeerLostError, TrainerError
from kopeck_trainer.reporter import Reporter, process_reporter
from kopeck_trainer.run_directory import leave_reason
from kopeck_trainer.stop_request import end_by_sigterm


def main() -> int:
    """The exit code of this rank; what it failed of is left for the launcher."""
    reporter = process_reporter()  # before torch is imported, which takes seconds
    try:
        return _train(reporter)
    except TrainerError as error:
        leave_reason(str(error))
        return error.exit_code
    except Exception as error:  # noqa: BLE001  the user's code may raise anything
        traceback.print_exc()
        leave_reason(f"{type(error).__name__}: {error}")
        return exit_codes.FAILED
    finally:
        reporter.close()


def _train(reporter: Reporter) -> int:
    environment = rank_environment(os.environ)
    config = read_config(environment.config_path)
    if config.training is None:
        raise ConfigurationError("spec.training", "it is missing", "write the training settings")

    # Here, so that reports flow and a wrong configuration is refused before torch is imported.
    from kopeck_trainer.peers import is_peer_lost, loss_of_peer  # noqa: PLC0415
    from kopeck_trainer.train import Outcome, train  # noqa: PLC0415

    try:
        outcome = train(config, config.training, environment, reporter)
    except Exception as error:
        if is_peer_lost(error):
            reason = f"rank {environment.rank} lost a peer: {loss_of_peer(error)}"
            raise PeerLostError(reason) from None
        raise
    if outcome is Outcome.STOPPED_UNSAVED:
        leave_reason("stopped by SIGTERM without a checkpoint: spec.training.checkpoint is unset")
        reporter.close()
        end_by_sigterm()
    stopped = outcome is Outcome.STOPPED_SAVED
    return exit_codes.CHECKPOINTED if stopped else exit_codes.COMPLETED


if __name__ == "__main__":
    exit_code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # At once: with a peer gone, the destructors of process groups could wait for it for ever.
    os._exit(exit_code)
