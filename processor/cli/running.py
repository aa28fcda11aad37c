"""What the verbs share that run an app until told to stop: signals, exit codes, a bound on both."""

import asyncio
import logging
import os
import signal
import threading
from functools import partial
from typing import Final

import faust

from processor.core.errors import ProcessorError
from processor.ops.logging import add_field
from processor.ops.stacks import write_stacks
from processor.partitioned_app import PartitionedApp

log: Final = logging.getLogger(__name__)

#: Kubernetes kills 30 s after SIGTERM.
DRAIN_S: Final = 25.0
#: Ctrl-C reaches the whole process group, and whoever started us may pass it on at once.
_ONE_WISH_S: Final = 1.0


def run_app(app: PartitionedApp) -> None:
    """Run ``app`` until a signal, or a fault, ends it.

    Raises:
        ProcessorError: Why it had to end by itself.
    """
    _run(app)
    if app.fatal is not None:
        if app.settings.log_format == "json":
            # The verb's own last words are text for a person: a collector takes events.
            log.error("ended by a fault", extra={"error": str(app.fatal)})
        raise app.fatal


def _run(app: PartitionedApp) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    runner = _Worker(app, loop=loop, override_logging=False, redirect_stdouts=False, quiet=True)
    # What a line of a worker is about depends on it: each has it.
    add_field("generation", lambda: app.consumer_generation_id)
    runner.spinner = None  # it writes terminal codes to wherever stdout goes
    for name in ("faust.worker", "processor.kafka.transport"):
        logging.getLogger(name).addFilter(partial(_is_unexpected, app))
    try:
        runner.execute_from_commandline()
    except ProcessorError as error:
        app.fatal = app.fatal or error
    except BaseException as ended:
        # Faust returns by leaving. What else it says beside a fault that we know is what came of
        # that fault: agents that it cancels when it has to stop while it starts, say.
        is_over = isinstance(ended, SystemExit) and not ended.code
        if not is_over and app.fatal is None:
            raise


def _is_unexpected(app: PartitionedApp, record: logging.LogRecord) -> bool:
    """Tell whether a crash is worth Faust's words; the verb reports our own errors."""
    is_ours = record.exc_info and isinstance(record.exc_info[1], ProcessorError)
    return not (is_ours or app.fatal is not None)


class _Worker(faust.Worker):
    """Faust's worker, without a banner, and with a bound on how long stopping may take."""

    def change_workdir(self, path: object) -> None:
        """Stay where we are."""

    def _install_signal_handlers_unix(self) -> None:
        """Stop at SIGINT and SIGTERM; tell at SIGUSR1 where everything stands.

        mode's own tells the values of variables too, secrets and records among them, and has a
        debugger wait at SIGUSR2.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            self.loop.add_signal_handler(number, self._schedule_shutdown, number)
        self.loop.add_signal_handler(signal.SIGUSR1, write_stacks, self.loop)

    def _schedule_shutdown(self, signal: signal.Signals) -> None:
        begun_at_s = self._signal_stop_time
        if begun_at_s is None:
            timer = threading.Timer(DRAIN_S, _give_up)
            timer.daemon = True
            timer.start()
            super()._schedule_shutdown(signal)
        elif self.loop.time() - begun_at_s > _ONE_WISH_S:
            log.warning("told to stop twice; what is not committed will be replayed")
            os._exit(128 + signal)


def _give_up() -> None:
    log.error("not stopped within %.0f s; what is not committed will be replayed", DRAIN_S)
    os._exit(1)
