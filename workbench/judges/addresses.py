"""Addresses that a key may be sent to."""

import ipaddress
from urllib.parse import urlsplit

from workbench.judges.base import NotAvailableError

_GOOGLE = ".googleapis.com"


def is_loopback(address: str) -> bool:
    """Return whether `address` (a URL) is on this machine."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_address(name: str, address: str) -> str:
    """Return `address`, from the variable `name`, without a trailing slash. "" stays.

    Raises:
        NotAvailableError: It is neither https nor on this machine, so a key sent there could be read on the way.
    """
    address = address.strip().rstrip("/")
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(address)))
        _ = parts.port
    except ValueError:
        usable = False
    if not usable:
        raise NotAvailableError(
            f"{name} is {shown_address(address)}, but keys are sent only over https or to this machine",
            f"set {name} to an https address, or remove it",
        )
    return address


def shown_address(address: str) -> str:
    """Return `address` without user, password and query, or "" if it is empty or one of Google's own."""
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "no address"
    if parts.scheme == "https" and ("." + host).endswith(_GOOGLE):
        return ""
    where = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{where}{'' if port is None else f':{port}'}{parts.path}" if host else "no address"
