"""A hub of models on this machine that speaks as much of the Hugging Face hub as huggingface_hub asks for, with
repositories in memory."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class Hub(ThreadingHTTPServer):
    """repositories: name -> its commits, each (revision, files)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.repositories: dict[str, list[tuple[str, dict[str, bytes]]]] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"

    def files(self, name: str, revision: str = "main") -> tuple[str, dict[str, bytes]] | None:
        """(revision, files) of a repository at a branch or commit."""
        commits = self.repositories.get(name, [])
        return next((one for one in reversed(commits) if revision in ("main", one[0])), None)

    def commit(self, name: str, changed: dict[str, bytes]) -> str:
        """Put files into a repository."""
        files = {**(self.repositories[name][-1][1] if self.repositories[name] else {}), **changed}
        told = repr((len(self.repositories[name]), sorted(files.items())))
        sha = hashlib.sha1(told.encode()).hexdigest()
        self.repositories[name].append((sha, files))
        return sha


class _Answers(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...

    def _say(self, status: int, told: Any = None, data: bytes | None = None, **headers: str) -> None:
        body = json.dumps(told).encode() if data is None else data
        self.send_response(status)
        kind = "application/json" if data is None else "application/octet-stream"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self, name: str) -> None:
        code = "RevisionNotFound" if name in self.server.repositories else "RepoNotFound"
        self._say(404, {"error": "not found"}, X_Error_Code=code)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.repositories.setdefault(name, [])
            self._say(200, {"url": f"{self.server.url}/{name}"})
        elif path == "/api/validate-yaml":
            self._say(200, {"errors": [], "warnings": []})
        elif found := re.fullmatch(r"/api/models/(.+)/preupload/main", path):
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            self._say(200, {"files": files})
        elif found := re.fullmatch(r"/api/models/(.+)/commit/main", path):
            lines = [json.loads(line) for line in body.splitlines()]
            changed = {
                one["value"]["path"]: base64.b64decode(one["value"]["content"]) for one in lines if one["key"] == "file"
            }
            sha = self.server.commit(found[1], changed)
            self._say(
                200, {"commitUrl": f"{self.server.url}/{found[1]}/commit/{sha}", "commitOid": sha, "success": True}
            )
        else:
            self._say(404, {"error": path})

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            if (held := self.server.files(found[1], found[2] or "main")) is None:
                return self._missing(found[1])
            siblings = [{"rfilename": name, "size": len(data), "blobId": _id(data)} for name, data in held[1].items()]
            self._say(
                200,
                {
                    "_id": "1",
                    "id": found[1],
                    "sha": held[0],
                    "siblings": siblings,
                    "tags": [],
                    "downloads": 0,
                    "likes": 0,
                },
            )
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            if (held := self.server.files(found[1], found[2])) is None:
                return self._missing(found[1])
            data = held[1][found[3]]
            self._say(200, data=data, ETag=f'"{_id(data)}"', X_Repo_Commit=held[0])
        else:
            self._say(404, {"error": path})

    do_HEAD = do_GET


def _id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@contextmanager
def hub() -> Iterator[Hub]:
    """A hub that is there as long as the block lasts."""
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
