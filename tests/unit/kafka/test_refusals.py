import pytest
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
)

from processor.core.errors import ConfigError, StateError, UnreachableError
from processor.kafka.refusals import why_not_fetched, why_refused
from processor.settings import Settings

SETTINGS = Settings(app_id="app", session_timeout_s=0.5)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (InvalidSessionTimeoutError(), "PROCESSOR_SESSION_TIMEOUT_S=0.5 lies outside"),
        (InconsistentGroupProtocolError(), "choose another PROCESSOR_APP_ID"),
        (GroupAuthorizationFailedError("app"), "lacks Read on group app; grant with"),
    ],
)
def test_group_that_will_never_take_us_says_what_to_do(error, remedy):
    refusal = why_refused(SETTINGS, "app", error)
    assert isinstance(refusal, ConfigError)
    assert remedy in str(refusal)


def test_group_that_may_take_us_next_time_is_joined_again():
    assert why_refused(SETTINGS, "app", UnknownMemberIdError()) is None


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (
            OffsetOutOfRangeError({}),
            StateError,
            "records: OffsetOutOfRangeError({}); retention has",
        ),
        (TopicAuthorizationFailedError("records"), ConfigError, "lacks Read on topic records"),
        (KafkaError("torn"), UnreachableError, "records: KafkaError('torn')"),
    ],
)
def test_what_ends_fetching_is_told_with_its_topic(error, kind, told):
    why = why_not_fetched(SETTINGS, "records", error)
    assert type(why) is kind
    assert told in str(why)
