"""Sound chunks for the oracle to judge, written without the project's own encoder."""

import base64
import hashlib
import json
from dataclasses import replace

from tests.e2e.log_reading import Message

S1 = b"s1"
BUDGET = 10


def log(*pairs, partition=0):
    """Put (key, value) pairs at even offsets: logs of transactional producers have holes."""
    return [
        Message(partition, 2 * at, 1_000 + at, key, value) for at, (key, value) in enumerate(pairs)
    ]


def line(size):
    return b'{"a":"' + b"x" * (size - 8) + b'"}'


def carried(message):
    try:
        json.loads(message.value.decode(), parse_int=str)
    except UnicodeDecodeError:
        return '"base64":"' + base64.b64encode(message.value).decode() + '"'
    except ValueError:
        return '"text":' + json.dumps(message.value.decode())
    return '"value":' + message.value.decode()


def tokens(message):
    return max(1, (len(message.value.decode(errors="replace")) + 3) // 4)


def chunk(  # noqa: PLR0913 - a sound chunk needs only the first three
    t, messages, previous, *, session=b"s1", partition=0, flush="tokens", **changes
):
    """Encode a sound chunk message, but for ``changes``; return it and its digest."""
    body = hashlib.sha256(previous)
    for each in messages:
        body.update(len(each.value).to_bytes(8, "big") + each.value)
    counts = [tokens(each) for each in messages]
    records = ",".join(
        f'{{"offset":{each.offset},"timestamp_ms":{each.timestamp_ms},'
        f'"token_count":{count},{carried(each)}}}'
        for each, count in zip(messages, counts, strict=True)
    )
    rest = {
        "schema_version": 1,
        "session": session.decode(),
        "t": t,
        "token_count": sum(counts),
        "token_counter": "chars_over_four",
        "max_tokens": BUDGET,
        "over_budget": sum(counts) > BUDGET,
        "policy": {"flush_tokens": BUDGET},
        "flush": flush,
        "final": flush == "end",
        "source": {
            "topic": "records",
            "partition": partition,
            "first_offset": messages[0].offset if messages else None,
            "last_offset": messages[-1].offset if messages else None,
        },
        "previous_digest": previous.hex(),
        "digest": body.hexdigest(),
    } | changes
    text = json.dumps(rest, ensure_ascii=False)[:-1] + f', "records":[{records}]}}'
    headers = (("ce_id", f"{session.decode()}/{t}".encode()),)
    return Message(partition, t, 5, session, text.encode(), headers), body.digest()


def chunked(*groups, session=b"s1", **changes):
    """Encode a session's chunks; each group is its records, then optionally its flush reason."""
    previous, made = hashlib.sha256(session).digest(), []
    for at, group in enumerate(groups, 1):
        messages = [each for each in group if isinstance(each, Message)]
        flush = next((each for each in group if isinstance(each, str)), "tokens")
        message, previous = chunk(at, messages, previous, session=session, flush=flush, **changes)
        made.append(message)
    return made


def rewritten(message, old, new):
    assert old in message.value
    return replace(message, value=message.value.replace(old, new))
