"""The child process with Dask's client, which keeps Dask's imports and threads out of the main process.

→ `{"op": "resolve", "word"}`, then `{"op": "connect", "topic"}`
→ `{"op": "needs", "needs": {name: version}, "python"}`: what workers must have
→ `{"op": "files", "file"}`: the zip file to send to the workers
→ `{"op": "submit", "key", "job", "workers": [address, …] | null, "again"}`, `{"op": "cancel", "key"}`
→ `{"op": "answer", "talk", "text"}`: a simulated user's move
→ `{"op": "end", "run"}`: end what the run has on the workers
→ `{"op": "quit"}`, or the end of the socket
← `{"op": "resolved", "address"}`, `{"op": "connected"}`, `{"op": "sent"}`, `{"op": "ended"}`
← `{"op": "failed", "why"}`: the scheduler cannot be reached; `{"op": "lost", "why"}`: the connection ended
← `{"op": "workers", "workers": [{"address", "name", "threads", "seen", "unfit", "about"}, …]}`
← `{"op": "progress", "messages": [{"key", "op", "worker", "address", …}, …]}` (`workbench.run.dask.worker_run`)
← `{"op": "question", "key", "text", "more"}`, `{"op": "report", "key", "text", "more"}` in parts
← `{"op": "died", "key", "why"}`: the task's workers died; `{"op": "broke", "key", "why"}`: Dask could not run it
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import socket
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from workbench.agents.channel import LoopChannel
from workbench.run.dask.dask_part import LARGEST_REPORT
from workbench.run.dask.task import Sealed, close_run, probe, run_execution
from workbench.text.counting import counted

_LONGEST = 2000
"""Maximum length of a name or a reason from the cluster, in characters."""
_PIECE = 4 * 1024 * 1024
_CONNECT_SECONDS = 10
_LOOK_EVERY = 2.0
"""Seconds between two checks of the workers."""
_TOGETHER = 0.05
"""Seconds for which progress is collected."""
_PROBE_SECONDS = 30.0
_END_SECONDS = 15.0
_SCATTER_SECONDS = 60.0
_SENT_RECENTLY = 5.0
_FIRST_TASK = len
"""A function that each scheduler and worker has. As a task, it makes an adaptive cluster start a first worker."""


class Cluster:
    """The connection to one cluster. `channel` leads to the workbench."""

    def __init__(self, channel: LoopChannel) -> None:
        self._channel = channel
        self._client: Any = None
        self._address = ""
        self._topic = ""
        self._needs: dict[str, str] = {}
        self._python = ""
        self._files: tuple[Sealed, Any] | None = None
        """The files and Dask's future of them."""
        self._scattering: asyncio.Task[None] | None = None
        self._sent_at = 0.0
        self._futures: dict[str, Any] = {}
        self._probed: dict[str, str | None] = {}
        """Address → why the worker is unsuitable, "" if it is suitable, None while it is being probed."""
        self._about: dict[str, str] = {}
        self._progress: list[dict[str, Any]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_lost = False
        self.quit = asyncio.Event()

    def take(self, frame: dict[str, Any]) -> None:
        """Start the work for a message of the workbench."""
        match frame["op"]:
            case "resolve":
                self._resolve(frame["word"])
            case "connect":
                self._topic = frame["topic"]
                self._spawn(self._connect())
            case "needs":
                self._needs, self._python = frame["needs"], frame["python"]
                self._probed.clear()
            case "files":
                self._spawn(self._send_files(frame["file"]))
            case "submit":
                self._futures[frame["key"]] = None
                self._spawn(self._run(frame["key"], frame["job"], frame["workers"], again=frame["again"]))
            case "cancel" if (future := self._futures.pop(frame["key"], None)) is not None:
                self._spawn(future.cancel(force=True))
            case "answer":
                self._spawn(self._answer(frame["talk"], frame["text"]))
            case "end":
                self._spawn(self._end(frame["run"]))
            case "quit":
                self.quit.set()

    async def close(self) -> None:
        """Cancel all work and disconnect from the cluster."""
        for task in self._tasks:
            task.cancel()
        if self._client is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._client.close(), _END_SECONDS)

    @property
    def _fit(self) -> list[str]:
        return [address for address, why in self._probed.items() if why == ""]

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _resolve(self, word: str) -> None:
        import dask.config  # Only this process may import Dask, and only when it connects.

        address = word
        if word == "dask":
            address = dask.config.get("scheduler-address", None) or ""
            file = dask.config.get("scheduler-file", None)
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                address = address or (json.loads(Path(file).read_text("utf-8"))["address"] if file else "")
        self._address = address.replace("dask://", "tcp://", 1)
        # The user's own spelling of an address that is not encrypted.
        self._channel.send({"op": "resolved", "address": self._address.replace("tcp://", "dask://", 1)})

    async def _connect(self) -> None:
        from distributed import Client, Queue

        try:
            self._client = await Client(
                self._address, asynchronous=True, set_as_default=False, timeout=_CONNECT_SECONDS, name="agent-workbench"
            )
            self._client.subscribe_topic(self._topic, self._progressed)
            questions = Queue(f"{self._topic}-questions", client=self._client)
        except Exception as error:
            self._channel.send({"op": "failed", "why": _words(error)})
            return
        self._channel.send({"op": "connected"})
        self._spawn(self._watch())
        self._spawn(self._ask(questions))

    async def _watch(self) -> None:
        waking = None
        while True:
            if self._client.status != "running":
                self._lost(f"the connection to the scheduler ended ({self._client.status})")
                return
            try:
                identity = await asyncio.wait_for(self._client.scheduler.identity(n_workers=-1), _PROBE_SECONDS)
                workers = identity["workers"]
            except Exception as error:  # Also that of a scheduler of another version, which does not know the question.
                self._lost(_words(error))
                return
            if not workers and waking is None:
                waking = self._client.submit(_FIRST_TASK, "", key=f"{self._topic}-first", pure=False)
            if self._needs and (new := [address for address in workers if address not in self._probed]):
                self._probed |= dict.fromkeys(new)
                self._spawn(self._probe(new))
            self._probed = {address: why for address, why in self._probed.items() if address in workers}
            self._tell(workers)
            await asyncio.sleep(_LOOK_EVERY)

    def _tell(self, workers: dict[str, Any]) -> None:
        now = time.time()
        told = [
            {
                "address": address,
                "name": str(one["name"])[:_LONGEST],
                "threads": one["nthreads"],
                "seen": max(0.0, now - one["last_seen"]),
                "unfit": self._probed.get(address),
                "about": self._about.get(address, ""),
            }
            for address, one in workers.items()
        ]
        self._channel.send({"op": "workers", "workers": told})

    async def _probe(self, addresses: list[str]) -> None:
        """Find out which workers are suitable. A wrong Python version is found without running code on the worker."""
        try:
            versions = (await asyncio.wait_for(self._client.get_versions(check=False), _PROBE_SECONDS))["workers"]
        except Exception:  # Whatever it is, the workers are asked one by one.
            versions = {}
        await asyncio.gather(*(self._probe_one(address, versions.get(address) or {}) for address in addresses))

    async def _probe_one(self, address: str, versions: dict[str, Any]) -> None:
        host = dict(versions.get("host") or {})
        python = ".".join(str(host.get("python", "")).split(".")[:2])
        self._about[address] = ", ".join(filter(None, [f"Python {python}" if python else "", str(host.get("OS", ""))]))
        wanted = self._needs.get("python", "")
        if python and python != wanted and not self._python:
            self._probed[address] = f"Python {python}, needs {wanted}"
            return
        try:
            asked = self._client.run(probe, self._needs, self._python, workers=[address], on_error="return")
            why = (await asyncio.wait_for(asked, _PROBE_SECONDS)).get(address, "it did not answer")
        except TimeoutError:
            why = f"it did not answer for {_PROBE_SECONDS:g} s"
        except Exception as error:
            why = error
        if isinstance(why, ModuleNotFoundError) and str(why.name).startswith("workbench"):
            why = f"agent-workbench is missing (needs {self._needs.get('agent-workbench')})"
        self._probed[address] = _words(why) if isinstance(why, BaseException) else str(why)[:_LONGEST]

    async def _send_files(self, file: str) -> None:
        content = Sealed(await asyncio.to_thread(Path(file).read_bytes))
        self._files = content, None
        try:
            await self._scatter(self._fit or None)
        except Exception as error:
            self._lost(f"the files cannot be sent: {_words(error)}")
            return
        self._channel.send({"op": "sent"})

    async def _scatter(self, workers: list[str] | None) -> None:
        """Send the files to `workers`. If it is None, send them to all workers, or to the first one that joins.

        Dask may drop copies. A worker then gets the files from another worker.
        """
        assert self._files is not None
        content = self._files[0]
        # By hash it would be the same data as before, of which the only holder may hang.
        sending = self._client.scatter(content, workers=workers, broadcast=True, hash=False, timeout=_SCATTER_SECONDS)
        self._files = content, await asyncio.wait_for(sending, _SCATTER_SECONDS)
        self._sent_at = asyncio.get_running_loop().time()

    async def _send_again(self, workers: list[str] | None) -> None:
        """Send the files again, unless they were sent a few seconds ago. Ignore a failure."""
        if asyncio.get_running_loop().time() - self._sent_at < _SENT_RECENTLY:
            return
        if self._scattering is None or self._scattering.done():
            self._scattering = asyncio.create_task(self._scatter(workers))
        with contextlib.suppress(Exception):  # The task then fails, and is submitted again.
            await asyncio.shield(self._scattering)

    async def _run(self, key: str, job: str, workers: list[str] | None, *, again: bool) -> None:
        """Run a task, and report its end. If the files are lost with their workers, send them again."""
        from distributed import KilledWorker

        assert self._files is not None
        if again or self._files[1] is None or self._files[1].status in ("cancelled", "lost", "error"):
            await self._send_again(workers)
        if key not in self._futures:
            return  # It was cancelled meanwhile.
        future = self._client.submit(
            run_execution,
            Sealed(job.encode("ascii")),
            self._files[1],
            key=key,
            pure=False,
            retries=0,
            workers=workers,
            allow_other_workers=False,
        )
        self._futures[key] = future
        try:
            self._send_pieces("report", key, await future)
        except KilledWorker as error:
            self._channel.send({"op": "died", "key": key, "why": _words(error)})
        except asyncio.CancelledError as error:
            if getattr(error, "reason", "") == "scheduler-connection-lost" or self._client.status != "running":
                self._lost("the connection to the scheduler ended")
            else:
                self._channel.send({"op": "broke", "key": key, "why": "Dask dropped the task"})
        except Exception as error:
            self._channel.send({"op": "broke", "key": key, "why": _words(error)})
        finally:
            self._futures.pop(key, None)
            future.release()

    def _progressed(self, event: tuple[float, Any]) -> None:
        if not self._progress:
            asyncio.get_running_loop().call_later(_TOGETHER, self._flush)
        self._progress.append(event[1])

    def _flush(self) -> None:
        messages, self._progress = self._progress, []
        self._channel.send({"op": "progress", "messages": messages})

    async def _ask(self, questions: Any) -> None:
        while True:
            text = await questions.get()
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):  # It is not from our task.
                self._send_pieces("question", str(json.loads(text)["key"]), text.encode("ascii"))

    async def _answer(self, talk: str, text: str) -> None:
        from distributed import Queue

        await Queue(f"{self._topic}-{talk}", client=self._client).put(text)

    async def _end(self, run: str) -> None:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._client.run(close_run, run, on_error="ignore"), _END_SECONDS)
        self._channel.send({"op": "ended"})

    def _send_pieces(self, op: str, key: str, data: bytes) -> None:
        if len(data) > LARGEST_REPORT:
            raise ValueError(f"the worker sent {counted(len(data), 'byte')}; the limit is {LARGEST_REPORT:,}")
        text = data.decode("ascii")
        for start in range(0, max(1, len(text)), _PIECE):
            piece = text[start : start + _PIECE]
            self._channel.send({"op": op, "key": key, "text": piece, "more": start + _PIECE < len(text)})

    def _lost(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._channel.send({"op": "lost", "why": why})


def _words(error: BaseException) -> str:
    text = " ".join(str(error)[:_LONGEST].split()) or type(error).__name__
    return text if isinstance(error, OSError) else f"{type(error).__name__}: {text}"


async def serve(sock: socket.socket) -> None:
    """Serve the workbench until it closes the socket or sends `quit`."""
    ended = asyncio.Event()
    cluster: Cluster
    cluster = Cluster(LoopChannel(sock, lambda frame: cluster.take(frame), lambda reason: ended.set()))
    done = [asyncio.ensure_future(event.wait()) for event in (ended, cluster.quit)]
    await asyncio.wait(done, return_when=asyncio.FIRST_COMPLETED)
    await cluster.close()


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(0)


def main() -> None:
    """Run the client with the descriptors of the command line."""
    parser = argparse.ArgumentParser(prog="workbench.run.dask.client")
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--lifeline", type=int, required=True)
    arguments = parser.parse_args()
    threading.Thread(target=_end_with, args=(arguments.lifeline,), daemon=True).start()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    asyncio.run(serve(socket.socket(fileno=arguments.control)))


if __name__ == "__main__":
    main()
