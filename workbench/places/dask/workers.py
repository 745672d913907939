"""The workers of a Dask scheduler, and an actor on each. Only this module and no other of ours imports Dask."""

import asyncio
import contextlib
import re
import secrets
from pathlib import Path
from typing import Any

import distributed
from distributed.actor import ProxyRPC
from distributed.protocol import to_serialize

from workbench.places.dask import actor
from workbench.places.dask.carrying import LostError

_CONNECTED_WITHIN = 10.0
_REACHED_WITHIN = 3.0
"""Seconds in which a worker must answer us directly. Else, the scheduler passes our calls on."""
_REPEATED_FOR = 60.0
"""Seconds after which a worker that cannot be reached is given up."""
_REPEATED_EVERY = 0.5
_THROUGH_SCHEDULER = 128
"""Calls through the scheduler at a time. It opens a connection for each, and has 512."""
_WAITS = 5.0
_WAITS_BRIEFLY = 0.5
_SCHEDULER_LOST = "the connection to the Dask scheduler was lost"
_LOST = ("lost", "error", "cancelled")


class NotConnectedError(Exception):
    """The scheduler cannot be reached. The text says why."""


class Workers:
    """A connection to a scheduler, whose workers may come and go."""

    def __init__(self, client: Any, cluster: Any = None) -> None:
        self.client = client
        self._cluster = cluster
        self.through_scheduler = asyncio.Semaphore(_THROUGH_SCHEDULER)
        self._known: dict[str, int] = {}
        self._source = _actor_source()

    @classmethod
    async def connect(cls, address: str) -> "Workers":
        """Connect to a scheduler. Dask's own configuration says which certificates are used.

        Raises:
            NotConnectedError: that is impossible.
        """
        return cls(await _client(address))

    @classmethod
    async def start(cls, count: int) -> "Workers":
        """Start a scheduler here, with `count` worker processes. Other users of this machine cannot connect to it."""
        try:
            security = distributed.Security.temporary()
            cluster = await distributed.LocalCluster(
                n_workers=count,
                processes=True,
                host="127.0.0.1",
                protocol="tls",
                security=security,
                dashboard_address=None,
                silence_logs=40,
                asynchronous=True,
            )
        except Exception as error:
            raise NotConnectedError(f"worker processes cannot be started here: {error}") from None
        return cls(await _client(cluster.scheduler_address, security=security), cluster)

    async def versions(self) -> tuple[str, str]:
        """Return our version of distributed, and the scheduler's."""
        found = await self.client.scheduler.versions()
        return distributed.__version__, str((found.get("packages") or {}).get("distributed", "?"))

    async def now(self) -> dict[str, int]:
        """Return the number of threads of each worker, by address.

        Raises:
            LostError: the scheduler is gone.
        """
        with contextlib.suppress(OSError):
            async with asyncio.timeout(_REACHED_WITHIN):
                self._known = await self.client.nthreads()
        if self.client.status != "running":
            raise LostError(_SCHEDULER_LOST)
        return self._known

    def actor(self, worker: str) -> "ActorOn":
        """Create an actor on a worker. Nothing but the name of the key is visible to other users."""
        future = self.client.submit(
            eval,  # Source works between different versions of Python. A pickled function does not.
            self._source,
            key=f"agent-workbench-host-{secrets.token_hex(16)}",
            workers=[worker],
            allow_other_workers=False,
            retries=0,
            pure=False,
            actor=True,
        )
        return ActorOn(self, worker, future)

    async def close(self) -> None:
        """Disconnect. Dask then forgets the actors, and their hosts end."""
        await self.client.close(timeout=2)
        if self._cluster is not None:
            await self._cluster.close(timeout=2)


class ActorOn:
    """The actor on one worker (`carrying.Actor`). The worker is called directly, or else through the scheduler."""

    def __init__(self, workers: Workers, worker: str, future: Any) -> None:
        self._client = workers.client
        self._through_scheduler = workers.through_scheduler
        self._worker = worker
        self._future = future
        self._direct = True
        self.waits = _WAITS

    async def ready(self) -> Any:
        """Wait until the worker has created the actor, and return its greeting."""
        with self._client.as_current():
            await distributed.wait(self._future)
        if self._future.status == "error":
            raise LostError(f"its worker cannot create an actor: {await self._future.exception()}")
        try:
            return await asyncio.wait_for(self._ask("greet"), _REACHED_WITHIN)
        except Exception:
            self._direct, self.waits = False, _WAITS_BRIEFLY
        return await self.call("greet")

    async def call(self, method: str, *arguments: Any) -> Any:
        """Return what a method returns. It is called again if its answer is lost."""
        loop = asyncio.get_running_loop()
        given_up = None
        while True:
            try:
                return await self._ask(method, *arguments)
            except OSError as error:  # Dask's errors of connections are such errors.
                given_up = given_up or loop.time() + _REPEATED_FOR
                if loop.time() > given_up:
                    raise LostError(f"its worker cannot be reached: {error}") from None
            except KeyError:
                raise LostError("its worker was restarted") from None
            except Exception as error:
                raise LostError(f"its worker failed: {type(error).__name__}: {error}") from None
            if self._future.status in _LOST:
                raise LostError("Dask lost its worker" if self._client.status == "running" else _SCHEDULER_LOST)
            await asyncio.sleep(_REPEATED_EVERY)

    def release(self) -> None:
        """Let Dask forget the actor."""
        self._future.release()

    async def _ask(self, method: str, *arguments: Any) -> Any:
        # A worker that logs for debugging shows bytes, which have the agents' keys in them, but no views of bytes.
        hidden = [to_serialize(memoryview(one)) if isinstance(one, bytes) and one else one for one in arguments]
        message = {"actor": self._future.key, "function": method, "args": hidden, "kwargs": {}}
        if self._direct:
            answer = await self._client.rpc(self._worker).actor_execute(**message)
        else:
            async with self._through_scheduler:
                answer = await ProxyRPC(self._client.scheduler, self._worker).actor_execute(**message)
        if answer["status"] != "OK":
            raise answer["exception"]
        return answer["result"]


async def _client(address: str, **options: Any) -> Any:
    try:
        return await distributed.Client(
            address,
            asynchronous=True,
            set_as_default=False,
            timeout=_CONNECTED_WITHIN,
            connection_limit=8192,
            name="agent-workbench",
            **options,
        )
    except Exception as error:
        reason = re.sub(r"in <[^>]*>: ", "", str(error.__cause__ or error))
        raise NotConnectedError(_unanswered(address, reason)) from None


def _unanswered(address: str, reason: str) -> str:
    """Return why there is no connection, and what to do where Dask's reason does not say it."""
    why = f"no Dask scheduler answers at {address}" + (f": {reason}" if reason else "")
    if address.startswith("tls:") and "ssl_context" in reason:
        return f"{why} (name your certificates in Dask's configuration, under `distributed.comm.tls`)"
    if address.startswith("tcp:") and "reset" in reason:
        return f"{why} (if it uses TLS, its address begins with tls://)"
    return why


def _actor_source() -> str:
    """Return an expression whose value is the actor (`actor.sit_down`)."""
    run = f"exec(compile({Path(actor.__file__).read_text(encoding='utf-8')!r}, '<agent-workbench>', 'exec'), names)"
    return f"(lambda names: ({run}, names['sit_down']())[1])({{}})"
