"""An app that has a router before it."""

from tests.e2e import asking
from tests.e2e.log_reading import end_offsets

ROUTE = ("-m", "processor", "route")


def telemetry_of(app):
    return app.environment()["PROCESSOR_TELEMETRY_TOPIC"]


def wait_until_routed(app, *, within_s=60.0):
    """Return once the routers have come to the end of the telemetry as of now."""
    topic, group = telemetry_of(app), f"{app.topics.app_id}-router"

    async def is_routed():
        ends = await end_offsets(app.bootstrap, topic)
        offsets = await asking.committed_offsets(app.bootstrap, group, list(ends))
        return all(offsets[at] >= end for at, end in ends.items())

    app.wait("all telemetry routed", is_routed, within_s=within_s)
