"""Workers with a fault of their own, which comes with the first records."""

import textwrap

FAULTY = """
    import asyncio, sys, time

    from aiokafka.consumer.group_coordinator import GroupCoordinator

    from processor.cli import main
    from processor.kafka.fetching import BatchFetcher
    from processor.ops import stacks
    from processor.protocol.partitions import Partitions

    feed = Partitions.feed


    async def hang(self, batch):
        if batch.records:
            await asyncio.Event().wait()
        await feed(self, batch)


    async def block(self, batch):
        if batch.records:
            time.sleep(1_000)
        await feed(self, batch)


    {fault}
    sys.exit(main())
"""


def start_faulty(app, fault, **settings):
    """Start a worker with ``fault``, a statement."""
    return app.start("-c", textwrap.dedent(FAULTY.format(fault=fault)), "worker", **settings)
