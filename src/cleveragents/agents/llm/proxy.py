"""The proxy that an environment names for an address, if it does."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


@dataclass(frozen=True, slots=True)
class Proxy:
    """``url`` may hold a password and is never shown; ``place`` is its scheme, host and port.

    ``variable`` is the environment variable that names it, "" where the system's settings do.
    """

    url: str
    place: str
    variable: str

    @property
    def named(self) -> str:
        """The proxy in an error's sentence."""
        return f"the proxy {self.place}" + (f", which {self.variable} names," if self.variable else "")


def proxy_for(address: str) -> Proxy | None:
    """The proxy on the way to ``address``; None where there is none: loopback is never reached through one.

    Hosts that NO_PROXY excludes are reached directly, whatever the other variables say.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    if not host or is_loopback(host) or proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return None
    proxies = getproxies()
    for scheme in (parts.scheme, "all"):
        if url := proxies.get(scheme):
            url = url if "://" in url else f"http://{url}"
            return Proxy(url, _place(url), _variable(scheme))
    return None


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine, by its name or its number."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _variable(scheme: str) -> str:
    # The one in lower case wins, as everywhere.
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")
    return next((name for name in names if os.environ.get(name)), "")


def _place(url: str) -> str:
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return "of the environment"
