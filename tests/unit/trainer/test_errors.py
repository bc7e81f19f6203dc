import pickle

from kopeck_trainer.errors import ConfigurationError


def test_a_configuration_error_says_the_same_on_the_ranks_that_it_is_sent_to() -> None:
    error = ConfigurationError("spec.training.samples", "81 is no multiple of 16", "use 96")
    sent = pickle.loads(pickle.dumps(error))  # noqa: S301  our own
    assert type(sent) is ConfigurationError
    assert str(sent) == str(error) == "spec.training.samples: 81 is no multiple of 16; use 96"
