"""Write every generated file of the repository, from its root."""

from pathlib import Path

import yaml

from kopeck.api.crd import crd
from kopeck_exporter.reference import reference_page

_CRD = Path("crds/kopeck.dev_trainingjobs.yaml")
_METRICS = Path("docs/metrics.md")


def main() -> None:
    _CRD.write_text(yaml.dump(crd(), Dumper=_PlainDumper, sort_keys=False, width=100))
    _METRICS.write_text(reference_page())


class _PlainDumper(yaml.SafeDumper):
    """Writes what occurs twice twice: anchors are no friends of readers."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  yaml's own signature
        return True


if __name__ == "__main__":
    main()
