"""Training without a kubelet: KWOK lets pods of a label run for a while and then complete."""

import json
from typing import Any

from tests.builders import a_report

LABELS = {"training": "fake"}
_SECONDS = 10


def fake_training() -> dict[str, Any]:
    """A KWOK Stage: pods with LABELS that run for ten seconds have trained to the end."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": "fake-training"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {
                "matchLabels": LABELS,
                "matchExpressions": [
                    {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
                    {"key": ".status.phase", "operator": "In", "values": ["Running"]},
                ],
            },
            "delay": {"durationMilliseconds": _SECONDS * 1000},
            "next": {"statusTemplate": _ENDED.replace("REPORT", json.dumps(_REPORT))},
        },
    }


# A JSON text in JSON: what stands in the template must itself be a YAML string.
_REPORT = json.dumps(a_report())
_ENDED = """\
{{ $now := Now }}
phase: Succeeded
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  restartCount: 0
  started: false
  state:
    terminated:
      exitCode: 0
      reason: Completed
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
      message: REPORT
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  restartCount: 0
  started: false
  state:
    terminated:
      exitCode: 0
      reason: Completed
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
"""
