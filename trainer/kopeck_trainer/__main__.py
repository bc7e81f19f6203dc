"""`python3 -m kopeck_trainer`: the launcher, PID 1 of the training container."""

import sys

from kopeck_trainer.launcher import main

sys.exit(main())
