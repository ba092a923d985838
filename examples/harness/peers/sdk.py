"""The official Python SDK initializes with every URL of a list, so many at a time, and prints how many answered."""
import asyncio
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def main(path, width):
    with open(path) as lines:
        urls = lines.read().split()
    places = asyncio.Semaphore(width)

    async def ask(url):
        async with (
            places,
            streamable_http_client(url) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            return bool((await session.initialize()).server_info.name)

    print(sum(await asyncio.gather(*map(ask, urls))))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
