"""Access of an environment to Google: with a key, or as a project with credentials. Keys go only to safe addresses.

The rules are google-genai's (`_api_client.py`) and google-auth's (`_default.py`). They are applied to the agent's
environment without importing either package.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from workbench.files.folders import expanded
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
    """Return `address`, the value of the variable `name`, without a trailing slash, or "" if it is empty.

    Raises:
        NotAvailableError: The address is neither https nor on this machine, so keys could be read on the way.
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
    """Return `address` without user, password and query, or "no address" if it is invalid.

    Return "" if it is empty or Google's own.
    """
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


_PRODUCT = Path("/sys/class/dmi/id/product_name")
CREDENTIALS_HINT = (
    "set GOOGLE_APPLICATION_CREDENTIALS to a credentials file in <agent>/.env, or run "
    "`gcloud auth application-default login`"
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials that sign a project's calls.

    `file` is a credentials file. `placeholder` means that no credentials are needed (a scripted server on this
    machine). If neither is set, the machine itself has credentials (a metadata server).
    """

    file: str = ""
    placeholder: bool = False


@dataclass(frozen=True, slots=True)
class GoogleAccess:
    """Access to Google's models.

    `vertex` selects Vertex AI instead of the Gemini API. `key` is for the Gemini API, or for Vertex without a project
    (express mode). `credentials` are for a project. `base_url` is "" for Google's own address.
    """

    vertex: bool
    key: str = field(default="", repr=False)
    project: str = ""
    location: str = ""
    base_url: str = ""
    credentials: Credentials | None = None


def uses_vertex(values: Mapping[str, str]) -> bool:
    """Return whether google-genai would use Vertex with these environment variables."""
    value = values.get("GOOGLE_GENAI_USE_ENTERPRISE", values.get("GOOGLE_GENAI_USE_VERTEXAI", ""))
    return value.strip().lower() in ("true", "1")


def gemini_access(model: str, values: Mapping[str, str]) -> GoogleAccess:
    """Return the access to `model`.

    Raises:
        NotAvailableError: A key, a project or credentials are missing, or the base address is not safe.
    """
    key = (values.get("GOOGLE_API_KEY") or values.get("GEMINI_API_KEY") or "").strip()
    if not uses_vertex(values):
        address = checked_address("GOOGLE_GEMINI_BASE_URL", values.get("GOOGLE_GEMINI_BASE_URL", ""))
        if key:
            return GoogleAccess(False, key, base_url=address)
        raise NotAvailableError(
            f"{model} needs a key",
            "set GOOGLE_API_KEY (or GOOGLE_GENAI_USE_VERTEXAI=true with GOOGLE_CLOUD_PROJECT and "
            "GOOGLE_CLOUD_LOCATION) in <agent>/.env",
        )
    address = checked_address("GOOGLE_VERTEX_BASE_URL", values.get("GOOGLE_VERTEX_BASE_URL", ""))
    project = values.get("GOOGLE_CLOUD_PROJECT", "").strip()
    location = values.get("GOOGLE_CLOUD_LOCATION", "").strip() or "global"
    if project:
        return GoogleAccess(True, "", project, location, address, find_credentials(model, address, values))
    if key:
        return GoogleAccess(True, key, base_url=address)
    raise NotAvailableError(
        f"{model} needs a project or an API key for Vertex AI",
        "set GOOGLE_CLOUD_PROJECT (and GOOGLE_CLOUD_LOCATION, default global) or GOOGLE_API_KEY in <agent>/.env",
    )


def find_credentials(who: str, address: str, values: Mapping[str, str]) -> Credentials:
    """Return the credentials for calls of `who` to `address`, by the rules of application default credentials.

    Raises:
        NotAvailableError: There are no credentials.
    """
    named = values.get("GOOGLE_APPLICATION_CREDENTIALS", "").strip()
    if named:
        if Path(named).is_file():
            return Credentials(named)
        message = f"{who} needs credentials, but the file in GOOGLE_APPLICATION_CREDENTIALS does not exist"
        raise NotAvailableError(message, CREDENTIALS_HINT)
    if address and is_loopback(address):
        return Credentials(placeholder=True)
    folder = values.get("CLOUDSDK_CONFIG") or str(expanded(values.get("HOME") or "~") / ".config" / "gcloud")
    known = Path(folder) / "application_default_credentials.json"
    if known.is_file():
        return Credentials(str(known))
    if _on_google(values):
        return Credentials()
    raise NotAvailableError(f"{who} needs Google credentials", CREDENTIALS_HINT)


def _on_google(values: Mapping[str, str]) -> bool:
    """Return whether this machine seems to have Google's metadata server. The server is not called."""
    if values.get("NO_GCE_CHECK", "").strip().lower() == "true":
        return False
    if any(values.get(name) for name in ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP", "K_SERVICE")):
        return True
    try:
        return _PRODUCT.read_text(encoding="utf-8", errors="replace").strip().startswith("Google")
    except OSError:
        return False
