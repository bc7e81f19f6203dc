"""The network interfaces of this pod, and the one by which its peers know it."""

import fcntl
import socket
import struct
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

_SIOCGIFADDR = 0x8915
_ADDRESS_OFFSET = 20  # of struct ifreq: a name of 16 bytes, then family and port
_LINK_LOCAL_SCOPE = "20"
_LOOPBACK = "lo"

Address = IPv4Address | IPv6Address


def interface_addresses(if_inet6: Path = Path("/proc/net/if_inet6")) -> dict[str, set[Address]]:
    """Addresses by interface: the first IPv4 one and all IPv6 ones but link-local.

    Without loopback and without interfaces that have none: NCCL and gloo do not use them.
    """
    found: dict[str, set[Address]] = {}
    for _, name in socket.if_nameindex():
        if address := _first_ipv4(name):
            found.setdefault(name, set()).add(address)
    for name, six in _all_ipv6(if_inet6):
        found.setdefault(name, set()).add(six)
    found.pop(_LOOPBACK, None)
    return found


def interface_to_name(pod_address: str, addresses: Mapping[str, set[Address]]) -> str | None:
    """The interface of the pod's address, if there are others that could be taken for it."""
    if len(addresses) < 2 or not pod_address:
        return None
    wanted = ip_address(pod_address)
    return next((name for name, each in addresses.items() if wanted in each), None)


def _first_ipv4(interface: str) -> IPv4Address | None:
    request = struct.pack("256s", interface.encode())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, _SIOCGIFADDR, request)
        except OSError:  # it has none
            return None
    return IPv4Address(answer[_ADDRESS_OFFSET : _ADDRESS_OFFSET + 4])


def _all_ipv6(if_inet6: Path) -> list[tuple[str, IPv6Address]]:
    """Of lines "address index prefix scope flags name", in hex; see if_inet6 in proc_net(5)."""
    try:
        lines = [line.split() for line in if_inet6.read_text().splitlines()]
    except OSError:  # a kernel without IPv6
        return []
    return [
        (name, IPv6Address(int(address, 16)))
        for address, _, _, scope, _, name in lines
        if scope != _LINK_LOCAL_SCOPE
    ]
