"""A worker and what it answers over HTTP."""

import json
import time
import urllib.error
import urllib.request
from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

from processor.demo.local_broker import free_ports
from processor.metrics import METRICS

POLL_S = 0.05
ANSWER_S = 5.0


class Probed:
    """A worker that serves at a port of its own.

    Args:
        app: Its deployment.
        start: Starts it, by default as ``app.start`` does.
    """

    def __init__(self, app, start=None, **settings):
        self.app, self.port = app, free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.worker = (start or app.start)(http_port=self.port, **settings)

    def ask(self, path):
        """Return status and text; ``None`` and nothing when nobody answers."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=ANSWER_S) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None, ""

    def is_live(self):
        return self.ask("livez")[0] == 200

    def problems(self, path):
        _, text = self.ask(path)
        return [it["what"] for it in json.loads(text)["problems"]]

    def status(self):
        return json.loads(self.ask("status.json")[1])

    def wait_until_live(self, *, within_s=30.0):
        self._wait(self.is_live, "alive", within_s)

    def wait_until_ready(self, *, within_s=60.0):
        """Return once it is ready; from when it serves on it must be alive all the time."""
        self.wait_until_live()
        self.wait_for_ready(200, within_s=within_s)

    def wait_until_not_ready(self, *, within_s=60.0):
        """Return once it says that it is not ready; it must be alive all the time."""
        self.wait_for_ready(503, within_s=within_s)

    def wait_for_ready(self, status, *, within_s):
        def is_so():
            assert self.is_live(), f"not alive: {self.ask('livez')}"
            return self.ask("readyz")[0] == status

        self._wait(is_so, f"/readyz {status}", within_s)

    def metrics(self):
        """Return each metric of ours, added up over its labels; a histogram's count."""
        sums = defaultdict(float)
        for family in text_string_to_metric_families(self.ask("metrics")[1]):
            for sample in family.samples:
                name = sample.name.removesuffix("_count")
                if sample.name in METRICS or name in METRICS:
                    sums[name] += sample.value
        return sums

    def _wait(self, is_so, what, within_s):
        deadline = time.monotonic() + within_s
        while not is_so():
            tail = self.worker.tail()
            assert self.worker.is_running(), f"ended before {what}; {tail}"
            assert time.monotonic() < deadline, f"not {what}: {self.ask('readyz')}; {tail}"
            time.sleep(POLL_S)
