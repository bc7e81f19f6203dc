"""What NCCL's configuration files set."""


def conf_variables(text: str) -> dict[str, str]:
    """Lines are KEY=value, the first counts, a comment has its # in the first column.

    NCCL's src/misc/param.cc.
    """
    lines = text.splitlines()
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    found: dict[str, str] = {}
    for name, _, value in pairs:
        found.setdefault(name, value)
    return found
