"""What a process says before it ends itself."""

import asyncio
import subprocess
import sys
import textwrap

from processor.ops.stacks import task_stacks

HANGING = """
    import asyncio, threading
    from processor.ops.stacks import exit_stuck

    async def innermost():
        await asyncio.Event().wait()

    async def outermost():
        await innermost()

    def elsewhere(loop):
        exit_stuck("it hangs", loop)

    async def main():
        task = asyncio.create_task(outermost(), name="hanging")
        await asyncio.sleep(0)
        thread = threading.Thread(target=elsewhere, args=(asyncio.get_running_loop(),))
        thread.start()
        thread.join()

    asyncio.run(main())
"""


def test_task_is_shown_with_every_await_down_to_the_one_it_waits_for():
    async def innermost(event):
        await event.wait()

    async def generating(event):
        await innermost(event)
        yield 1

    async def iterating(event):
        async for _ in generating(event):
            pass

    class Actor:
        """As Faust wraps an agent's coroutine."""

        def __init__(self, coroutine):
            self.coroutine = coroutine

        def __await__(self):
            return self.coroutine.__await__()

    async def outermost(event):
        await Actor(iterating(event))

    async def story():
        event = asyncio.Event()
        task = asyncio.create_task(outermost(event), name="hanging")
        await asyncio.sleep(0)
        text = task_stacks(asyncio.get_running_loop())
        event.set()
        await task
        return text

    (hanging,) = [it for it in asyncio.run(story()).split("Task ") if it.startswith("hanging:")]
    names = [line.split(" in ")[1] for line in hanging.splitlines() if ", line " in line]
    assert names == ["outermost", "iterating", "generating", "innermost", "wait"]


def test_process_that_hangs_ends_with_stacks_of_tasks_and_threads_and_the_message():
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", textwrap.dedent(HANGING)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 70
    assert "Task hanging:" in done.stderr
    assert "in innermost" in done.stderr
    assert "in elsewhere" in done.stderr
    assert done.stderr.splitlines()[-1] == "processor: it hangs"
