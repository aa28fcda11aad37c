"""What the lines of a coding agent's transcript look like, tool by tool.

Only shapes and sizes are taken from the real thing: all text and every identifier is made up. A
line is made with marks where the session's name and the time go.
"""

import base64
import json
import math
import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Line: TypeAlias = dict[str, Any]

MAX_TEXT_CHARS: Final = 90_000
# Written into the pool's lines and replaced in each session's.
SESSION_MARK: Final = "@session@"
TIME_MARK: Final = "@time@"
TIME_MS_MARK: Final = 1_111_111_111_111
# JSON.stringify writes half of a cut emoji as an escape, which a Python str can't hold and encode.
LONE_SURROGATE_MARK: Final = "\ue000"

PROSE: Final = """
the a of to in and is it for we with that this one reads writes keeps returns checks file line test
buffer parser index queue cache table order value error retry branch commit module path function
argument result because before after while should would first last empty whole next already `flush`
src/store/index.ts lib/queue.py don't it's it, so: then. done. Let's Now The When I'll
"""
PROGRAM: Final = """
const let return import export def self None if else for => = == != && || ; { } ( ) [ ] , : await
async class new this.queue items.push(item) row.offset 0 1 42 0x1f // # TODO true false total
+= len(line) options.limit ?? 100 try: except
"""
WORDS: Final = (*PROSE.split(), "\n", "\n\n", "- ", '"quoted"', "—")
CODE: Final = (
    *PROGRAM.split(), "\n", "\n", "\n\t", "\n\t\t", "\n    ", '"name"', "'utf-8'", "\\n",
    "\x1b[32m✓\x1b[0m",
)  # fmt: skip
FOREIGN: Final = (
    "会話の続きを読み込みます", "请检查缓冲区的顺序", "대기열이 비어 있습니다",
    "naïve café — “été”",
    "🚀 done ✅", "👩‍💻🧪", "line\u2028separator", "next\u0085line", "Ünïcödé → ∑ ≠ ∞",
)  # fmt: skip


def encode(line: Line) -> bytes:
    """Write a line as the tools do: no white space, and nothing escaped that need not be."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    return text.replace(LONE_SURROGATE_MARK, "\\ud83d").encode()


# Small things a line is made of.


def _happens(rng: random.Random, share: float) -> bool:
    return rng.random() < share


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _opaque(rng: random.Random, median: int) -> str:
    size = int(rng.lognormvariate(math.log(median), 0.5))
    return base64.b64encode(rng.randbytes(size * 3 // 4)).decode()


def _text(rng: random.Random, median: int, sigma: float, words: tuple[str, ...] = WORDS) -> str:
    """Make a text of log-normal length: most are short, a few are very long."""
    size = min(int(rng.lognormvariate(math.log(median), sigma)), MAX_TEXT_CHARS)
    text = " ".join(rng.choices(words, k=size // 4 + 1))[:size]
    if _happens(rng, 0.07):
        text = f"{text[: size // 2]}{rng.choice(FOREIGN)}{text[size // 2 :]}"
    if _happens(rng, 0.001):
        text += LONE_SURROGATE_MARK
    return text


def _tool(rng: random.Random) -> tuple[str, Line]:
    """Make a call of a tool: its name and its arguments."""
    path = f"src/{rng.choice(('store', 'queue', 'parser'))}/{rng.randrange(40)}.ts"
    if _happens(rng, 0.5):
        return "bash", {"command": _text(rng, 70, 0.6), "timeout": 30}
    if _happens(rng, 0.5):
        return "read", {"path": path}
    if _happens(rng, 0.8):
        old, new = _text(rng, 250, 1.0, CODE), _text(rng, 350, 1.0, CODE)
        return "edit", {"path": path, "oldText": old, "newText": new}
    return "write", {"path": path, "content": _text(rng, 1_800, 1.2, CODE)}


def _output(rng: random.Random) -> str:
    """Make a tool's output: from a word to a whole file."""
    if _happens(rng, 0.06):
        return _text(rng, 20_000, 0.9, CODE)
    return _text(rng, 900, 1.2, CODE) if _happens(rng, 0.7) else _text(rng, 90, 0.5)


# pi, version 3.


def _pi_first(_rng: random.Random) -> Line:
    return {
        "type": "session", "version": 3, "id": SESSION_MARK, "timestamp": TIME_MARK,
        "cwd": "/srv/checkout/orchard", "provider": "example", "modelId": "example-large-1",
        "thinkingLevel": "off",
    }  # fmt: skip


def _pi_message(role: str, content: list[Line], **rest: object) -> Line:
    message = {"role": role, "content": content, **rest, "timestamp": TIME_MS_MARK}
    return {"type": "message", "timestamp": TIME_MARK, "message": message}


def _pi_assistant(rng: random.Random, content: list[Line], stop: str) -> Line:
    spent = {name: rng.randrange(9_000) for name in ("input", "output", "cacheRead", "cacheWrite")}
    cost = {name: tokens * 3e-6 for name, tokens in spent.items()}
    usage = spent | {"totalTokens": sum(spent.values()), "cost": cost}
    about = {"api": "example-messages", "provider": "example", "model": "example-large-1"}
    return _pi_message("assistant", content, **about, usage=usage, stopReason=stop)


def _pi_turn(rng: random.Random) -> Iterator[Line]:
    if _happens(rng, 0.3):
        level = rng.choice(("off", "low", "high"))
        yield {"type": "thinking_level_change", "timestamp": TIME_MARK, "thinkingLevel": level}
    asked = "" if _happens(rng, 0.05) else _text(rng, 110, 0.9)
    yield _pi_message("user", [{"type": "text", "text": asked}])
    if _happens(rng, 0.1):
        yield _pi_assistant(rng, [], "aborted")
        return
    while _happens(rng, 0.8):
        content: list[Line] = []
        if _happens(rng, 0.1):
            thought, signature = _text(rng, 500, 1.0), _opaque(rng, 700)
            content.append(
                {"type": "thinking", "thinking": thought, "thinkingSignature": signature}
            )
        if _happens(rng, 0.45):
            content.append({"type": "text", "text": _text(rng, 130, 0.7)})
        name, arguments = _tool(rng)
        call = f"toolu_{rng.getrandbits(96):024x}"
        content.append({"type": "toolCall", "id": call, "name": name, "arguments": arguments})
        yield _pi_assistant(rng, content, "toolUse")
        answer = [{"type": "text", "text": _output(rng)}]
        is_error = _happens(rng, 0.05)
        yield _pi_message("toolResult", answer, toolCallId=call, toolName=name, isError=is_error)
    yield _pi_assistant(rng, [{"type": "text", "text": _text(rng, 400, 0.9)}], "stop")


# Claude Code.


def _claude_snapshot(rng: random.Random) -> Line:
    files = {
        f"src/{n}.py": {"version": n, "backupTime": TIME_MARK} for n in range(rng.randrange(40))
    }
    snapshot = {"messageId": _uuid(rng), "trackedFileBackups": files, "timestamp": TIME_MARK}
    about = {"messageId": snapshot["messageId"], "snapshot": snapshot, "isSnapshotUpdate": False}
    return {"type": "file-history-snapshot"} | about


def _claude_line(rng: random.Random, kind: str, **rest: object) -> Line:
    return {
        "parentUuid": _uuid(rng), "isSidechain": False, "userType": "external",
        "cwd": "/srv/checkout/orchard-worktrees/cellar", "sessionId": SESSION_MARK,
        "version": "9.0.1", "gitBranch": "cellar-door", "slug": "quiet-walking-lantern",
        "type": kind, **rest, "uuid": _uuid(rng), "timestamp": TIME_MARK,
    }  # fmt: skip


def _claude_hook(rng: random.Random, call: str) -> Line:
    event = rng.choice(("PreToolUse", "PostToolUse", "Stop"))
    script = rng.choice(("notify-session", "capture-tool-output", "format-changed-files"))
    command = f"${{PLUGIN_ROOT}}/hooks/scripts/{script}.sh"
    hook = {
        "type": "hook_progress",
        "hookEvent": event,
        "hookName": f"{event}:Bash",
        "command": command,
    }
    return _claude_line(rng, "progress", data=hook, parentToolUseID=call, toolUseID=call)


def _claude_assistant(rng: random.Random, block: Line) -> Line:
    cached = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": rng.randrange(9_000)}
    usage = {
        "input_tokens": 3, "cache_creation_input_tokens": rng.randrange(9_000),
        "cache_read_input_tokens": rng.randrange(90_000), "cache_creation": cached,
        "output_tokens": rng.randrange(400), "service_tier": "standard",
    }  # fmt: skip
    message = {
        "model": "example-large-1", "id": f"msg_{rng.getrandbits(96):024x}", "type": "message",
        "role": "assistant", "content": [block], "stop_reason": None, "usage": usage,
    }  # fmt: skip
    return _claude_line(rng, "assistant", message=message, requestId=f"req_{_uuid(rng)}")


def _claude_turn(rng: random.Random) -> Iterator[Line]:
    if _happens(rng, 0.4):
        yield _claude_snapshot(rng)
    yield _claude_line(rng, "user", message={"role": "user", "content": _text(rng, 150, 1.2)})
    yield _claude_assistant(rng, {"type": "text", "text": "\n\n"})
    while _happens(rng, 0.8):
        if _happens(rng, 0.1):
            thought = {"type": "thinking", "thinking": _text(rng, 300, 0.5), "signature": ""}
            yield _claude_assistant(rng, thought)
        name, arguments = _tool(rng)
        call = f"toolu_{rng.getrandbits(96):024x}"
        block = {"type": "tool_use", "id": call, "name": name, "input": arguments}
        yield _claude_assistant(rng, block)
        for _ in range(rng.randrange(2, 8)):
            yield _claude_hook(rng, call)
        output = _output(rng)
        while _happens(rng, 0.6):
            done = {"type": "bash_progress", "output": output[-250:], "fullOutput": output[-500:]}
            yield _claude_line(rng, "progress", data=done, parentToolUseID=call)
        answer = {"tool_use_id": call, "type": "tool_result", "content": output, "is_error": False}
        result = {"stdout": output, "stderr": "", "interrupted": False}
        message = {"role": "user", "content": [answer]}
        yield _claude_line(rng, "user", message=message, toolUseResult=result)
    yield _claude_assistant(rng, {"type": "text", "text": _text(rng, 150, 0.8)})


# Codex.


def _codex_line(kind: str, payload_type: str | None, **payload: object) -> Line:
    named = {} if payload_type is None else {"type": payload_type}
    return {"timestamp": TIME_MARK, "type": kind, "payload": named | payload}


def _codex_first(rng: random.Random) -> Line:
    git = {"commit_hash": f"{rng.getrandbits(160):040x}", "branch": "orchard"}
    about = {"cwd": "/srv/checkout/orchard", "originator": "codex_cli_rs", "cli_version": "9.0.1"}
    named = {"id": SESSION_MARK, "timestamp": TIME_MARK}
    return _codex_line("session_meta", None, **named, **about, instructions=None, git=git)


def _codex_message(role: str, kind: str, text: str) -> Line:
    content = [{"type": kind, "text": text}]
    return _codex_line("response_item", "message", role=role, content=content)


def _codex_turn(rng: random.Random) -> Iterator[Line]:
    sandbox = {"type": "workspace-write", "network_access": False, "exclude_slash_tmp": False}
    cwd = "/srv/checkout/orchard"
    yield _codex_line("turn_context", None, cwd=cwd, sandbox_policy=sandbox, effort="medium")
    asked = "" if _happens(rng, 0.05) else _text(rng, 110, 0.9)
    yield _codex_message("user", "input_text", asked)
    yield _codex_line("event_msg", "user_message", message=asked, images=[])
    while _happens(rng, 0.7):
        thought = _text(rng, 120, 0.7)
        summary = [{"type": "summary_text", "text": thought}]
        hidden = _opaque(rng, 900)
        yield _codex_line("event_msg", "agent_reasoning", text=thought)
        yield _codex_line("response_item", "reasoning", summary=summary, encrypted_content=hidden)
        name, arguments = _tool(rng)
        call, given = f"call_{rng.getrandbits(96):024x}", json.dumps(arguments)
        asking = {"name": name, "arguments": given, "call_id": call}
        yield _codex_line("response_item", "function_call", **asking)
        output = _output(rng)
        yield _codex_line("response_item", "function_call_output", call_id=call, output=output)
        limits = {"primary": {"used_percent": rng.randrange(99), "window_minutes": 300}}
        yield _codex_line("event_msg", "token_count", info=None, rate_limits=limits)
    said = _text(rng, 150, 0.8)
    yield _codex_message("assistant", "output_text", said)
    yield _codex_line("event_msg", "agent_message", message=said)


@dataclass(frozen=True, slots=True)
class Shape:
    """One tool's way of writing a transcript."""

    first: Callable[[random.Random], Line]
    turn: Callable[[random.Random], Iterator[Line]]
    late_share: float
    """Share of lines dated before the line above them."""
    share: float
    """Share of sessions in ``transcripts``."""


SHAPES: Final[Mapping[str, Shape]] = {
    "pi": Shape(_pi_first, _pi_turn, late_share=0.001, share=0.6),
    "claude": Shape(_claude_snapshot, _claude_turn, late_share=0.1, share=0.35),
    "codex": Shape(_codex_first, _codex_turn, late_share=0.0, share=0.05),
}
