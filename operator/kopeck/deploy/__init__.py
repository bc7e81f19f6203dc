"""Generated files: `python -m kopeck.deploy` writes them, `make verify` fails if they differ."""
