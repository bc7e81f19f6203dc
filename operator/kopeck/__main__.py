"""`python -m kopeck`, where the command `kopeck` is not on the path."""

from kopeck.cli import main

main()
