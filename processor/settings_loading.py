"""Where settings come from: flag, environment, ``processor.toml``, default; the first that has one.

A misspelt name in a flag or in the file is an error; in the environment it is a warning, since a
Kubernetes service called ``processor`` injects ``PROCESSOR_PORT=tcp://...`` and more like it. An
empty variable counts as not set: compose files pass ``${NAME:-}`` on.
"""

import difflib
import logging
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from processor.core.errors import ConfigError
from processor.settings import PREFIX, SECRETS, Settings, env_name

DEFAULT_FILE: Final = Path("processor.toml")
_log = logging.getLogger(__name__)


def load_settings(
    flags: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    path: Path | None = None,
) -> Settings:
    """Read the settings: flag, then environment, then file, then default.

    Args:
        flags: Field name to value; ``None`` values count as not given.
        environ: The environment; the process's own when not given.
        path: The file, which must exist; ``processor.toml`` if there is one when not given.

    Raises:
        ConfigError: A name is unknown, a value is not allowed, or a file can't be read.
    """
    return load_with_origins(flags, environ=environ, path=path)[0]


def load_with_origins(
    flags: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    path: Path | None = None,
) -> tuple[Settings, dict[str, str]]:
    """Read the settings as ``load_settings`` does, and where each field's value is from."""
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    findings = _unknown(given, "flag")
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.model_fields, "default")
    layers = (
        (str(path or DEFAULT_FILE), _read_file(path, findings)),
        ("environment", _read_environment(os.environ if environ is None else environ)),
        ("flag", given),
    )
    for origin, layer in layers:
        known = {name: layer[name] for name in layer if name in Settings.model_fields}
        values |= known
        origins |= dict.fromkeys(known, origin)
    try:
        settings = Settings(**values)
    except ValidationError as error:
        findings.append(_describe(error, values, origins))
    if findings:
        # Not in the handler: the chain to its error would show secrets.
        raise ConfigError("\n".join(findings))
    return settings, origins


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name most like ``name``."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]


def _unknown(names: Iterable[str], where: str) -> list[str]:
    return [
        f"unknown setting {name!r} ({where}); the nearest name is"
        f" {nearest(name, Settings.model_fields)!r}"
        for name in names
        if name not in Settings.model_fields
    ]


def _read_file(path: Path | None, findings: list[str]) -> dict[str, Any]:
    if path is None and not DEFAULT_FILE.exists():
        return {}
    path = path or DEFAULT_FILE
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        msg = f"can't read settings from {path}: {error}"
        raise ConfigError(msg) from None
    findings += _unknown(values, str(path))
    return values


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known = {env_name(field): field for field in Settings.model_fields}
    for name in environ:
        if name.startswith(PREFIX) and name not in known:
            hint = nearest(name, (each for each in known if each.startswith(PREFIX)))
            _log.warning("ignored unknown variable %s; the nearest name is %s", name, hint)
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): environ[name] for name in known if environ.get(name)}
    values: dict[str, Any] = {known[name]: value for name, value in source().items()}
    for field in SECRETS:
        file_name = env_name(field) + "_FILE"
        if location := environ.get(file_name):
            if field in values:
                msg = f"set one of {env_name(field)} and {file_name}, not both"
                raise ConfigError(msg)
            values[field] = _read_secret(file_name, Path(location))
    return values


def _read_secret(name: str, path: Path) -> str:
    try:
        # Editors and `echo` end a file with a line break that is no part of the secret.
        return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"can't read the file {str(path)!r} that {name} names: {type(error).__name__}"
        raise ConfigError(msg) from None


def _describe(error: ValidationError, values: Mapping[str, Any], origins: Mapping[str, str]) -> str:
    """Say which settings are wrong and what is allowed, without a secret's value."""
    findings = []
    for finding in error.errors(include_url=False):
        reason = finding["msg"].removeprefix("Value error, ")
        field = str(finding["loc"][0]) if finding["loc"] else ""
        if not field:
            findings.append(reason)
        elif field in SECRETS:
            findings.append(f"{env_name(field)} ({origins[field]}) has a value of the wrong type")
        else:
            value = f"{env_name(field)}={values[field]}"
            findings.append(f"{value} ({origins[field]}) isn't allowed: {reason}")
    return "\n".join(findings)
