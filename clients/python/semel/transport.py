"""Connections to the server: kept alive, used by any thread, and honest about what a failure proves."""

from __future__ import annotations

import json
import os
from collections import deque
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ssl import SSLContext
from typing import Any, Deque, Dict, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .errors import Unavailable, Unknown, from_problem
from .outcome import to_json

IDLE_MAX = 16
"""How many connections are kept for later; as many as are needed are opened."""


class Transport:
    """One server's address, and idle connections to it. A deque's ends are safe without a lock, also across a fork."""

    def __init__(self, url: str, token: Optional[str], timeout: float, tls: Optional[SSLContext]) -> None:
        self._idle: Deque[HTTPConnection] = deque()
        self._pid = os.getpid()
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a server: write http://127.0.0.1:4747")
        self._is_https = parts.scheme == "https"
        self._host, self._port, self._prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self._tls = tls
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self.timeout = timeout

    def post(self, path: str, body: Mapping[str, Any], timeout: Optional[float] = None) -> Dict[str, Any]:
        """Asks, once."""
        return self._ask("POST", path, to_json(body).encode(), timeout or self.timeout)

    def get(self, path: str, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Looks, once."""
        return self._ask("GET", path, None, timeout or self.timeout)

    def close(self) -> None:
        """Closes the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        self.close()

    def _ask(self, method: str, path: str, body: Optional[bytes], timeout: float) -> Dict[str, Any]:
        kept, unknown = self._take(), None  # type: Optional[HTTPConnection], Optional[Unknown]
        if kept is not None:
            try:
                return self._exchange(kept, method, path, body, timeout)
            except Unknown as error:
                # The server may have closed it while it was idle. Every ask may be made twice, so this costs nothing.
                self.close()
                if not isinstance(error.__cause__, ConnectionError):
                    raise
                unknown = error
        try:
            connection = self._open(timeout)
        except Unavailable as error:
            raise unknown or error from error
        return self._exchange(connection, method, path, body, timeout)

    def _take(self) -> Optional[HTTPConnection]:
        if self._pid != os.getpid():
            # A forked process must not speak on its parent's connections; to close its copies ends nothing there.
            self.close()
            self._pid = os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _open(self, timeout: float) -> HTTPConnection:
        if self._is_https:
            connection: HTTPConnection = HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        else:
            connection = HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            connection.connect()
        except OSError as error:
            raise Unavailable(f"nothing was done: {self._host} cannot be reached: {error}") from error
        return connection

    def _exchange(
        self, connection: HTTPConnection, method: str, path: str, body: Optional[bytes], timeout: float
    ) -> Dict[str, Any]:
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request(method, self._prefix + path, body, self._headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, HTTPException) as error:
            connection.close()
            raise Unknown(f"the reply was lost: {error!r}: ask again with the same key") from error
        except BaseException:
            # An interrupt may have left half an answer: whoever used the connection next would read it as theirs.
            connection.close()
            raise
        if response.will_close or len(self._idle) >= IDLE_MAX:
            connection.close()
        else:
            self._idle.append(connection)
        return _answer(response, text)


def _answer(response: HTTPResponse, text: bytes) -> Dict[str, Any]:
    members, is_json = _members(text)
    if response.status == 200:
        if is_json:
            return members
        raise Unknown("the answer is no JSON object: is this a semel server?")
    detail = members.get("detail") or members.get("title") or response.reason or "no reason given"
    raise from_problem(response.status, members.get("code"), str(detail), _retry_after(response))


def _members(text: bytes) -> Tuple[Dict[str, Any], bool]:
    try:
        members = json.loads(text)
    except ValueError:
        return {}, False
    return (members, True) if isinstance(members, dict) else ({}, False)


def _retry_after(response: HTTPResponse) -> float:
    try:
        return max(0.0, float(response.headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0
