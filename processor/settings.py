"""What an operator can set: one frozen ``Settings``, read once at start."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AliasGenerator,
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import PydanticBaseSettingsSource as Source

from processor.core.errors import ConfigError
from processor.core.policy import ChunkPolicy, OrIdle

SECRETS: Final = ("sasl_password", "sasl_oauthbearer_client_secret")
PREFIX: Final = "PROCESSOR_"
#: What ``Settings.chunk_policy`` is made of, with what counts.
POLICY: Final = (
    "max_tokens",
    "token_counter",
    "idle_s",
    "max_age_s",
    "max_chunk_bytes",
    "max_chunk_records",
    "carry_headers",
    "deduplicate_records",
    "forget_ended_after_s",
)

# Fields that every Kafka client has, under the names that other tools give them too.
_KAFKA_FIELDS: Final = re.compile("bootstrap_|security_|sasl_|ssl_|group_|auto_offset_")


def env_name(field: str) -> str:
    """Return the environment variable of a field: ``max_tokens`` -> ``PROCESSOR_MAX_TOKENS``."""
    return ("KAFKA_" if _KAFKA_FIELDS.match(field) else PREFIX) + field.upper()


def listed(text: str) -> tuple[str, ...]:
    """Return the parts of a setting that is a list, separated by commas."""
    return tuple(filter(None, map(str.strip, text.split(","))))


# Kafka's own rule for topic names; a group name that is also part of one obeys it too. 200 of
# its 249 characters, so that "-sessions-changelog" still fits behind an app id.
KafkaName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,200}$")]
AppId = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{0,200}$")]
HttpUrlText = Annotated[str, StringConstraints(pattern=r"^https?://[^/?#@\s]+[^#@\s]*$")]
Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=0, le=65_535)]
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
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = "PLAIN"
    """How to log in under a SASL protocol."""
    sasl_username: str | None = None
    """User name for SASL."""
    sasl_password: SecretStr | None = None
    """Password for SASL; KAFKA_SASL_PASSWORD_FILE names a file that holds it."""
    sasl_oauthbearer_token_endpoint_url: HttpUrlText | None = None
    """Where OAUTHBEARER asks for tokens with client credentials."""
    sasl_oauthbearer_client_id: str | None = None
    """Client id to ask the token endpoint with."""
    sasl_oauthbearer_client_secret: SecretStr | None = None
    """Its secret; KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET_FILE names a file that holds it."""
    sasl_oauthbearer_scope: str | None = None
    """Scope to ask the token endpoint for."""
    sasl_oauthbearer_token_file: Path | None = None
    """File that holds a token, read for each connection, instead of a token endpoint."""
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
    telemetry_topic: KafkaName = "telemetry"
    """Topic of telemetry that is not keyed by session, for `processor route`."""
    telemetry_format: str = "auto"
    """Format of all telemetry; auto detects it of each stream, by what it brings."""
    session_fields: str = ""
    """Where telemetry holds its session: dotted paths or attributes, the first that is there."""
    header_fields: str = ""
    """What of a line, or of telemetry, becomes a header of its record: header=path, by commas."""
    positions_topic: KafkaName = "processor-positions"
    """Compacted topic in which whatever feeds other topics keeps how far it has come."""
    max_tokens: Count = 5000
    """Budget of a chunk, in tokens."""
    token_counter: str = "qwen2.5"  # noqa: S105  # tokens of text, no credential
    """What counts them: qwen2.5, o200k, cl100k, hf:PATH (a tokenizer.json) or chars_over_four."""
    idle_s: Seconds = 300.0
    """Close a chunk this long after its last record; 0: never."""
    max_age_s: Seconds = 0.0
    """Close a chunk this long after its first record; 0: never."""
    max_chunk_bytes: Count = 900_000
    """Bytes of an encoded chunk."""
    max_chunk_records: Count = 10_000
    """Records in a chunk."""
    carry_headers: str = ""
    """Headers of records that chunks carry, comma separated."""
    deduplicate_records: Annotated[int, Field(ge=0)] = 0
    """Leave a record out whose record-id header stood so many offsets before it; 0: never."""
    forget_ended_after_s: Seconds = 0.0
    """Forget a session so long after its end; what comes then begins at t = 1. 0: never."""
    clock_grace_s: Seconds = 5.0
    """Allowed skew between the brokers' clocks and ours."""
    commit_interval_s: PositiveSeconds = 0.1
    """Commit a partition at most this often."""
    compression: Annotated[Literal["none", "snappy", "lz4", "zstd"], LowerCase] = "zstd"
    """Compression of what is written; none saves a worker's CPU, zstd lets larger records pass."""
    max_replay_records: Count | None = None
    """Records of a partition that a restart may have to read again; unset: 200,000, or three times
    those that are open, if more."""
    max_dead_letter_ratio: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Stop when more than this share of a partition's last records has no session; 1: never."""
    max_consecutive_dead_letters: Annotated[int, Field(ge=0)] = 100
    """Stop when more records than this in a row have no session; 0: never."""
    session_timeout_s: PositiveSeconds = 10.0
    """Silence after which the group takes a worker for dead; a restart by id must be quicker."""
    stuck_after_s: Seconds = 120.0
    """End a worker when its event loop, or a partition that is behind, stood still; 0: never."""
    http_host: str = "127.0.0.1"
    """Address of health, metrics and status page, which all who reach it may read."""
    http_port: Port = 8085
    """Port of health, metrics and status page; 0: none. Unless set, the next free one if taken."""
    accept_policy_change: bool = False
    """Start although the stored state was made under another chunk policy."""
    tracing: bool = False
    """Make a span of each chunk, sent where the standard OTEL_* variables say."""
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

    @property
    def routes_changelog_topic(self) -> str:
        """Topic of what `processor route` remembers, which carries the app's name."""
        return f"{require_app_id(self).app_id}-routes-changelog"

    @property
    def chunk_policy(self) -> ChunkPolicy:
        """The rule that chunks are cut by."""
        return ChunkPolicy(
            max_tokens=self.max_tokens,
            flush=OrIdle(self.idle_s) if self.idle_s else None,
            max_age_s=self.max_age_s,
            max_chunk_bytes=self.max_chunk_bytes,
            max_chunk_records=self.max_chunk_records,
            carry_headers=listed(self.carry_headers),
            deduplicate_records=self.deduplicate_records,
            forget_ended_after_s=self.forget_ended_after_s,
        )

    @property
    def header_paths(self) -> tuple[tuple[str, str], ...]:
        """Name of each header of ``header_fields``, and where its value is found.

        Raises:
            ConfigError: One is not given as ``header=path``.
        """
        parts = [it.partition("=") for it in listed(self.header_fields)]
        if wrong := ["".join(it) for it in parts if not (it[0] and it[2])]:
            msg = f"{env_name('header_fields')}: {wrong[0]!r} is not of the form header=path"
            raise ConfigError(msg)
        return tuple((name, path) for name, _, path in parts)

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if faults := [*self._topic_faults(), *self._login_faults()]:
            raise ValueError("\n".join(faults))
        return self

    def _topic_faults(self) -> Iterator[str]:
        names = [self.records_topic, self.chunks_topic, self.dead_letter_topic]
        names.append(self.positions_topic)
        if self.app_id:
            names.append(self.changelog_topic)
        if len(set(names)) < len(names):
            yield (
                "records, chunks, dead letters, positions and changelog need a topic each, not "
                f"{names}"
            )

    def _login_faults(self) -> Iterator[str]:
        missing = [env_name(it) for it in self._credentials() if getattr(self, it) is None]
        if missing:
            yield (
                f"KAFKA_SECURITY_PROTOCOL={self.security_protocol} with KAFKA_SASL_MECHANISM="
                f"{self.sasl_mechanism}, so set {' and '.join(missing)}"
            )
        if self.sasl_oauthbearer_token_file and self.sasl_oauthbearer_token_endpoint_url:
            yield (
                "set one of KAFKA_SASL_OAUTHBEARER_TOKEN_FILE and"
                " KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL, not both"
            )
        if (self.ssl_certificate_location is None) != (self.ssl_key_location is None):
            yield "set both or none of KAFKA_SSL_CERTIFICATE_LOCATION and KAFKA_SSL_KEY_LOCATION"

    def _credentials(self) -> tuple[str, ...]:
        """Return the fields that a login needs."""
        if not self.security_protocol.startswith("SASL"):
            return ()
        if self.sasl_mechanism != "OAUTHBEARER":
            return ("sasl_username", "sasl_password")
        if self.sasl_oauthbearer_token_file is not None:
            return ()
        fields = ("token_endpoint_url", "client_id", "client_secret")
        return tuple(f"sasl_oauthbearer_{it}" for it in fields)

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
