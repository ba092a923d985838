"""aiohttp asks every URL of a list for `initialize`, so many at a time, and prints how many answered."""
import asyncio
import sys

import aiohttp

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "peer", "version": "1"},
    },
}
HEADERS = {"Accept": "application/json, text/event-stream"}


async def main(path, width):
    with open(path) as lines:
        urls = lines.read().split()
    places = asyncio.Semaphore(width)
    # Without its pool: with it, a census runs out of file descriptors.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector, headers=HEADERS) as session:

        async def ask(url):
            async with places, session.post(url, json=CALL) as response:
                said = await response.json(content_type=None)
                return "serverInfo" in said["result"]

        print(sum(await asyncio.gather(*map(ask, urls))))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
