"""Topology files for tests: a small good one, and the reference files where they are at hand."""

from pathlib import Path

import pytest

GOOD = """\
<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
</system>
"""

_FOLDER = Path(__file__).parents[4] / "shared" / "data" / "topology"

needs_reference_files = pytest.mark.skipif(
    not _FOLDER.is_dir(), reason=f"the vendors' reference files are not in {_FOLDER}"
)


def reference(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()
