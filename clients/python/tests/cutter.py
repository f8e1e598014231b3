"""A way to the server that loses replies: what was asked for happens, and nobody hears of it."""

from __future__ import annotations

import socket
import threading
from typing import List
from urllib.parse import urlsplit

from .place import URL


class Cutter:
    """Passes everything on, but for the replies that are to be cut."""

    def __init__(self) -> None:
        self.cuts = 0
        self.were_cut = 0
        self._sockets: List[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """Ends every connection, and takes no more."""
        for each in [self._listener, *self._sockets]:
            _end(each)

    def __enter__(self) -> Cutter:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _accept(self) -> None:
        server = urlsplit(URL)
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection((server.hostname, server.port))
            self._sockets += [near, far]
            threading.Thread(target=self._pass_on, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(far, near, True), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, are_replies: bool) -> None:
        try:
            while True:
                data = source.recv(65536)
                # The server answers once it has acted: its first byte is the proof that the ask took.
                if data and are_replies and self.cuts > 0:
                    self.cuts, self.were_cut, data = self.cuts - 1, self.were_cut + 1, b""
                if not data:
                    break
                sink.sendall(data)
        except OSError:
            pass
        _end(source)
        _end(sink)


def _end(each: socket.socket) -> None:
    try:
        # Whoever waits in a call on it is woken by this, and not by a close.
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    each.close()
