"""What an operator can set: one frozen ``Settings``, read once at start.

A value comes from the first of: flag, environment, ``processor.toml``, default. A misspelt name
in a flag or in the file is an error; in the environment it is a warning, since a Kubernetes
service called ``processor`` injects ``PROCESSOR_PORT=tcp://...`` and more like it. An empty
variable counts as not set: compose files pass ``${NAME:-}`` on.
"""

import difflib
import logging
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AliasGenerator,
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict
from pydantic_settings import PydanticBaseSettingsSource as Source

from processor.core.errors import ConfigError

DEFAULT_FILE: Final = Path("processor.toml")
SECRETS: Final = ("sasl_password",)
PREFIX: Final = "PROCESSOR_"

# Fields that every Kafka client has, under the names that other tools give them too.
_KAFKA_FIELDS: Final = re.compile("bootstrap_|security_|sasl_|ssl_|group_|auto_offset_")
_log = logging.getLogger(__name__)


def env_name(field: str) -> str:
    """Return the environment variable of a field: ``max_tokens`` -> ``PROCESSOR_MAX_TOKENS``."""
    return ("KAFKA_" if _KAFKA_FIELDS.match(field) else PREFIX) + field.upper()


# Kafka's own rule for topic names; a group name that is also part of one obeys it too. 200 of
# its 249 characters, so that "-sessions-changelog" still fits behind an app id.
KafkaName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,200}$")]
AppId = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{0,200}$")]
Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
LowerCase = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)


class Settings(BaseSettings):
    """Everything that can be set; each field's docstring is also its flag's help."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        use_attribute_docstrings=True,
        alias_generator=AliasGenerator(validation_alias=env_name),
    )

    bootstrap_servers: Annotated[str, StringConstraints(min_length=1)] = "localhost:9092"
    """Brokers to ask first, host:port, comma separated."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How to talk to the brokers."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    """How to log in under a SASL protocol."""
    sasl_username: str | None = None
    """User name for SASL."""
    sasl_password: SecretStr | None = None
    """Password for SASL; KAFKA_SASL_PASSWORD_FILE names a file that holds it."""
    ssl_ca_location: Path | None = None
    """PEM file of the authorities to trust; the system's when not set."""
    ssl_certificate_location: Path | None = None
    """PEM file of the client's certificate, for mutual TLS."""
    ssl_key_location: Path | None = None
    """PEM file of the client's key, for mutual TLS."""
    group_instance_id: KafkaName | None = None
    """Id of this worker in the group, the same after a restart, which then moves no partition."""
    auto_offset_reset: Literal["earliest", "latest"] = "earliest"
    """Where the very first start of an app reads from."""

    app_id: AppId = ""
    """Name of the deployment: the consumer group, the changelog and the transactional ids."""
    records_topic: KafkaName = "records"
    """Topic of transcript records, keyed by session."""
    chunks_topic: KafkaName = "chunks"
    """Topic of chunks."""
    dead_letter_topic: KafkaName = "records.dead-letter"
    """Topic of records without a session."""
    max_tokens: Count = 5000
    """Budget of a chunk, in tokens."""
    token_counter: str = "chars_over_four"  # noqa: S105  # tokens of text, no credential
    """Name of the token counter."""
    idle_s: Seconds = 300.0
    """Close a chunk this long after its last record; 0: never."""
    max_age_s: Seconds = 0.0
    """Close a chunk this long after its first record; 0: never."""
    max_chunk_bytes: Count = 900_000
    """Bytes of an encoded chunk."""
    max_chunk_records: Count = 10_000
    """Records in a chunk."""
    clock_grace_s: Seconds = 5.0
    """Allowed skew between the brokers' clocks and ours."""
    commit_interval_s: PositiveSeconds = 0.1
    """Commit a partition at most this often."""
    compression: Annotated[Literal["none", "snappy", "lz4", "zstd"], LowerCase] = "zstd"
    """Compression of what is written; none saves a worker's CPU, zstd lets larger records pass."""
    max_replay_records: Count = 200_000
    """Records of a partition that a restart may have to read again."""
    session_timeout_s: PositiveSeconds = 10.0
    """Silence after which the group takes a worker for dead; a restart by id must be quicker."""
    stuck_after_s: Seconds = 120.0
    """End a worker when its event loop, or a partition that is behind, stood still; 0: never."""
    accept_policy_change: bool = False
    """Start although the stored state was made under another chunk policy."""
    create_topics: bool = True
    """Create missing topics when a worker starts."""
    log_format: Annotated[Literal["console", "json"], LowerCase] = Field(
        default_factory=lambda: "console" if sys.stderr.isatty() else "json"
    )
    """Shape of the log; console on a terminal, else json."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], LowerCase] = "info"
    """Least severity that is logged."""

    @property
    def changelog_topic(self) -> str:
        """Topic of the session state, which carries the app's name."""
        return f"{require_app_id(self).app_id}-sessions-changelog"

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        names = [self.records_topic, self.chunks_topic, self.dead_letter_topic]
        if self.app_id:
            names.append(self.changelog_topic)
        if len(set(names)) < len(names):
            msg = f"records, chunks, dead letters and changelog need a topic each, not {names}"
            raise ValueError(msg)
        if self.security_protocol.startswith("SASL"):
            for field in ("sasl_username", "sasl_password"):
                if getattr(self, field) is None:
                    msg = f"{env_name('security_protocol')} is SASL, so set {env_name(field)}"
                    raise ValueError(msg)
        if (self.ssl_certificate_location is None) != (self.ssl_key_location is None):
            msg = "set both or none of KAFKA_SSL_CERTIFICATE_LOCATION and KAFKA_SSL_KEY_LOCATION"
            raise ValueError(msg)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  # pydantic-settings' signature
        init_settings: Source,
        *_: Source,
        **__: Source,
    ) -> tuple[Source, ...]:
        """Take arguments alone: ``load_settings`` reads the sources and knows each origin."""
        return (init_settings,)


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
    _reject_unknown(given, "flag")
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.model_fields, "default")
    layers = (
        (str(path or DEFAULT_FILE), _read_file(path)),
        ("environment", _read_environment(os.environ if environ is None else environ)),
        ("flag", given),
    )
    for origin, layer in layers:
        values |= layer
        origins |= dict.fromkeys(layer, origin)
    try:
        return Settings(**values), origins
    except ValidationError as error:
        # Its own text, and the chain to it, would show secrets.
        raise ConfigError(_describe(error, values, origins)) from None


def require_app_id(settings: Settings) -> Settings:
    """Return ``settings`` if they name an app.

    Raises:
        ConfigError: They don't.
    """
    if not settings.app_id:
        msg = (
            f"{env_name('app_id')} isn't set; give this deployment a name that stays the same"
            f" over restarts: --app-id NAME, or {env_name('app_id')}=NAME"
        )
        raise ConfigError(msg)
    return settings


def flag_names() -> dict[str, str]:
    """Return each field's command line option; secrets have none, since a process list shows it."""
    fields = (field for field in Settings.model_fields if field not in SECRETS)
    return {field: "--" + field.replace("_", "-") for field in fields}


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name most like ``name``."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]


def _reject_unknown(names: Iterable[str], where: str) -> None:
    for name in names:
        if name not in Settings.model_fields:
            hint = nearest(name, Settings.model_fields)
            msg = f"unknown setting {name!r} ({where}); the nearest name is {hint!r}"
            raise ConfigError(msg)


def _read_file(path: Path | None) -> dict[str, Any]:
    if path is None and not DEFAULT_FILE.exists():
        return {}
    path = path or DEFAULT_FILE
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"can't read settings from {path}: {error}"
        raise ConfigError(msg) from None
    _reject_unknown(values, str(path))
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
