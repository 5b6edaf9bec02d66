# SPDX-License-Identifier: GPL-3.0-or-later
"""A TCP proxy that delays every byte by half a round trip each way: latency where the kernel has no netem.

It does not look into TLS, so every client keeps its own connections, HTTP version and certificates.
"""

import asyncio
import contextlib
import threading
import typing as t
from collections.abc import Iterator


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Copy bytes, each chunk `delay_s` later; chunks overlap, so bandwidth is not touched."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def send() -> None:
        while True:
            due, chunk = await queue.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    sender = asyncio.create_task(send())
    with contextlib.suppress(OSError):
        while True:
            chunk = await reader.read(65536)
            queue.put_nowait((loop.time() + delay_s, chunk))
            if not chunk:
                break
    with contextlib.suppress(OSError):
        await sender


@contextlib.contextmanager
def delayed(host: str, port: int, latency_ms: float) -> Iterator[tuple[str, int]]:
    """Run a proxy to host:port on a free loopback port for the time of the with block; yield its address."""
    started = threading.Event()
    address: list[t.Any] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(host, port)
        half = latency_ms / 2000
        try:
            with contextlib.suppress(asyncio.CancelledError):  # the end of the with block ends what is still open
                await asyncio.gather(_pump(reader, up_writer, half), _pump(up_reader, writer, half))
        finally:
            up_writer.close()
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        address.extend(server.sockets[0].getsockname())
        started.set()
        async with server:
            await server.serve_forever()

    async def serve_until(stop: asyncio.Event) -> None:
        serving = asyncio.create_task(serve())
        await stop.wait()
        others = (asyncio.all_tasks() | {serving}) - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    stop = asyncio.Event()
    loop = asyncio.new_event_loop()

    def run() -> None:
        with contextlib.closing(loop):
            loop.run_until_complete(serve_until(stop))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait(timeout=10)
    try:
        yield address[0], address[1]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=10)
