"""Options that verbs share: settings as flags, made from the fields of ``Settings``."""

import functools
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, get_args

import click

from processor.feeding.choice import SessionRule
from processor.formats import FORMATS
from processor.ops.logging import configure_logging
from processor.settings import Settings, env_name, flag_names, require_app_id
from processor.settings_loading import load_settings

P = ParamSpec("P")
R = TypeVar("R")

KAFKA: Final = (
    "bootstrap_servers",
    "security_protocol",
    "sasl_mechanism",
    "sasl_username",
    "sasl_oauthbearer_token_endpoint_url",
    "sasl_oauthbearer_client_id",
    "sasl_oauthbearer_scope",
    "sasl_oauthbearer_token_file",
    "ssl_ca_location",
    "ssl_certificate_location",
    "ssl_key_location",
)
LOG: Final = ("log_format", "log_level")
ROUTE: Final = ("telemetry_topic", "telemetry_format", "session_fields", "header_fields")
TOPICS: Final = ("app_id", "records_topic", "chunks_topic", "dead_letter_topic")


def settings_options(
    *fields: str,
) -> Callable[[Callable[Concatenate[Settings, P], R]], Callable[P, R]]:
    """Give a verb a flag for each field, and call it with the ``Settings`` as first argument.

    The log is set up too. A verb with the flag ``--app-id`` needs one, from wherever it comes.

    Args:
        fields: Names of fields, such as ``*KAFKA, "chunks_topic"``; the log's are always there.
    """
    offered = (*fields, *LOG)

    def decorate(verb: Callable[Concatenate[Settings, P], R]) -> Callable[P, R]:
        @functools.wraps(verb)
        def with_settings(*args: P.args, **kwargs: P.kwargs) -> R:
            flags = {field: kwargs.pop(field) for field in offered}
            path: Any = kwargs.pop("config_file")
            settings = load_settings(flags, path=path)
            configure_logging(settings)
            if "app_id" in offered:
                require_app_id(settings)
            return verb(settings, *args, **kwargs)

        command: Callable[P, R] = with_settings
        for field in reversed(offered):
            command = _option(field)(command)
        return config_file_option(command)

    return decorate


def config_file_option(verb: Callable[P, R]) -> Callable[P, R]:
    """Give a verb ``--config-file``, passed to it as ``config_file``."""
    return click.option(
        "--config-file",
        type=click.Path(path_type=Path),
        help="Settings file.  [default: processor.toml, if there is one]",
    )(verb)


def session_options(verb: Callable[Concatenate[SessionRule, P], R]) -> Callable[P, R]:
    """Give a verb that reads files the choice of a session, its first argument."""

    @functools.wraps(verb)
    def with_rule(*args: P.args, **kwargs: P.kwargs) -> R:
        name: Any = kwargs.pop("session")
        field: Any = kwargs.pop("session_field")
        if name is not None and field is not None:
            msg = "--session and --session-field exclude each other"
            raise click.UsageError(msg)
        return verb(SessionRule(name, field), *args, **kwargs)

    command: Callable[P, R] = click.option(
        "--session-field",
        metavar="PATH",
        help="Where each JSON line holds its session, such as metadata.session_id.",
    )(with_rule)
    return click.option(
        "--session",
        metavar="NAME",
        callback=session_name,
        help="Session of all lines.  [default: what the format tells, else the file's name]",
    )(command)


def session_name(_: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Return the name of a session that a person gave; a callback of click.

    Raises:
        BadParameter: It can't be one.
    """
    try:
        is_name = name is None or bool(name.encode())
    except UnicodeEncodeError:  # what is not UTF-8 on a command line comes as surrogates
        is_name = False
    if not is_name:
        msg = "a session is named by UTF-8 text that isn't empty"
        raise click.BadParameter(msg, param=option)
    return name


def format_option(verb: Callable[P, R]) -> Callable[P, R]:
    """Give a verb ``--format``, passed to it as ``format_name``; None for what a file shows."""
    return click.option(
        "--format",
        "format_name",
        type=click.Choice(list(FORMATS)),
        help="What the lines are read as.  [default: what the first ones are like]",
    )(verb)


def output_option(verb: Callable[P, R]) -> Callable[P, R]:
    """Give a verb that reads ``--output text|json``, passed to it as ``output``."""
    return click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="For people, or one JSON document a line.",
    )(verb)


def _option(field: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    info = Settings.model_fields[field]
    flag = flag_names()[field]
    if info.annotation is bool:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    help_text = f"{info.description}  [{env_name(field)}{_default(info.default)}]"
    metavar = "RATIO" if field.endswith("_ratio") else _metavar(info.annotation)
    # Values are checked by Settings, wherever they come from; click takes any text.
    return click.option(flag, field, default=None, metavar=metavar, help=help_text)


def _default(default: object) -> str:
    is_shown = isinstance(default, str | int | float) and default != ""
    return f"; default: {default}" if is_shown else ""


def _metavar(annotation: Any) -> str | None:  # noqa: ANN401  # annotations have no common type
    if annotation is bool:
        return None
    choices = [choice for choice in get_args(annotation) if isinstance(choice, str)]
    if choices:
        return "|".join(choices)
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return {int: "N", float: "SECONDS", Path: "PATH"}.get(kinds[0], "TEXT")
