"""Apache Kafka with a listener for each way to log in, TLS on all, and rights by ACL alone.

The plain listener is the tests' own: who comes through it, ``User:ANONYMOUS``, may do anything.
"""

import base64
import json
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import trustme
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from processor.demo.kafka_jvm import start_jvm
from processor.demo.local_broker import HOST, free_ports

PASSWORD = "pass-word-that-nobody-may-see"  # noqa: S105 - made up, as are all here
CLIENT_SECRET = "client-secret-that-nobody-may-see"  # noqa: S105
SECRETS = (PASSWORD, CLIENT_SECRET)
AUDIENCE = "kafka"

#: Name of a listener -> its security protocol. The last three are wrong in one thing each.
LISTENERS = {
    "SCRAM": "SASL_SSL",
    "PLAIN": "SASL_SSL",
    "OAUTH": "SASL_SSL",
    "MTLS": "SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
}
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_BEARER = "org.apache.kafka.common.security.oauthbearer"


class SecureKafka:
    """A running broker, and what its clients need to get in.

    Attributes:
        broker: The broker; ``broker.bootstrap`` is the plain listener.
        folder: Holds certificates and keys as PEM files.
        tokens: The token endpoint.
    """

    def __init__(self, folder):
        self.folder = folder
        self._ports = dict(zip(("PLAINTEXT", "CONTROLLER", *LISTENERS), free_ports(8), strict=True))
        self._make_certificates()
        self.tokens = TokenEndpoint()
        (folder / "jwks.json").write_text(json.dumps(self.tokens.key_set))
        scram = [f"[name={{}},password={PASSWORD}]".format(it) for it in ("worker", "other")]
        users = [f"{hash_}={it}" for hash_ in ("SCRAM-SHA-256", "SCRAM-SHA-512") for it in scram]
        self.broker = start_jvm(
            port=self._ports["PLAINTEXT"],
            overrides=self._properties(),
            format_options=[option for it in users for option in ("--add-scram", it)],
            java_options=[
                f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self._key_set_url}",
                f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={folder / 'jwks.json'}",
            ],
        )

    def stop(self):
        self.broker.stop()
        self.tokens.stop()

    def client(self, listener, **changes):
        """Return the environment of a client of a listener; ``changes`` replace or, as None, drop.

        ``SCRAM-SHA-256`` and ``SCRAM-SHA-512`` share the listener ``SCRAM``.
        """
        listener, mechanism = {
            "SCRAM-SHA-256": ("SCRAM", "SCRAM-SHA-256"),
            "SCRAM-SHA-512": ("SCRAM", "SCRAM-SHA-512"),
            "PLAIN": ("PLAIN", "PLAIN"),
            "OAUTHBEARER": ("OAUTH", "OAUTHBEARER"),
        }.get(listener, (listener, None))
        environment = {
            "KAFKA_BOOTSTRAP_SERVERS": f"localhost:{self._ports[listener]}",
            "KAFKA_SECURITY_PROTOCOL": LISTENERS[listener],
            "KAFKA_SSL_CA_LOCATION": str(self.folder / "ca.pem"),
        }
        if mechanism == "OAUTHBEARER":
            environment |= {
                "KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": self.tokens.url,
                "KAFKA_SASL_OAUTHBEARER_CLIENT_ID": "worker",
                "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": CLIENT_SECRET,
                "KAFKA_SASL_OAUTHBEARER_SCOPE": "records chunks",
            }
        elif mechanism is not None:
            environment |= {"KAFKA_SASL_USERNAME": "worker", "KAFKA_SASL_PASSWORD": PASSWORD}
        elif listener == "MTLS":
            environment |= {
                "KAFKA_SSL_CERTIFICATE_LOCATION": str(self.folder / "worker.pem"),
                "KAFKA_SSL_KEY_LOCATION": str(self.folder / "worker.key"),
            }
        if mechanism is not None:
            environment["KAFKA_SASL_MECHANISM"] = mechanism
        changed = environment | changes
        return {name: value for name, value in changed.items() if value is not None}

    @property
    def _key_set_url(self):
        return (self.folder / "jwks.json").as_uri()

    def _make_certificates(self):
        authority, stranger = trustme.CA(), trustme.CA()
        authority.cert_pem.write_to_path(self.folder / "ca.pem")
        stranger.cert_pem.write_to_path(self.folder / "stranger-ca.pem")
        yesterday = datetime.now(UTC) - timedelta(days=1)
        self._write_store("server", authority.issue_cert("localhost", HOST))
        self._write_store("elsewhere", authority.issue_cert("elsewhere.test"))
        expired = authority.issue_cert("localhost", HOST, not_after=yesterday)
        self._write_store("expired", expired)
        for name, issuer in (("worker", authority), ("stranger", stranger)):
            issued = issuer.issue_cert(f"{name}.test", common_name=name)
            issued.private_key_pem.write_to_path(self.folder / f"{name}.key")
            issued.cert_chain_pems[0].write_to_path(self.folder / f"{name}.pem")

    def _write_store(self, name, issued):
        """Write a PEM key store as Kafka reads one: its key is PKCS #8."""
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        chain = b"".join(it.bytes() for it in issued.cert_chain_pems)
        (self.folder / f"{name}-store.pem").write_bytes(pem + chain)

    def _properties(self):
        own = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
        protocols = own | LISTENERS
        at = [f"{name}://{HOST}:{port}" for name, port in self._ports.items()]
        told = [
            f"{name}://localhost:{port}"
            for name, port in self._ports.items()
            if name != "CONTROLLER"
        ]
        properties = {
            "listeners": ",".join(at),
            "advertised.listeners": ",".join(told),
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
            "controller.quorum.voters": f"1@{HOST}:{self._ports['CONTROLLER']}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
        }
        stores = {"EXPIRED": "expired", "ELSEWHERE": "elsewhere"}
        for name in LISTENERS:
            store = self.folder / f"{stores.get(name, 'server')}-store.pem"
            properties[f"listener.name.{name.lower()}.ssl.keystore.location"] = str(store)
        users = "".join(f' user_{it}="{PASSWORD}"' for it in ("worker", "other"))
        return properties | {
            "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.scram.scram-sha-256.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
            "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
            "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.plain.plain.sasl.jaas.config": f"{_PLAIN_MODULE} required{users};",
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.mtls.ssl.principal.mapping.rules": r"RULE:^CN=([^,]+).*$/$1/",
            "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.oauth.oauthbearer.sasl.jaas.config": (
                f"{_BEARER}.OAuthBearerLoginModule required;"
            ),
            "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": (
                f"{_BEARER}.OAuthBearerValidatorCallbackHandler"
            ),
            # By default 4.1.1 takes a token of any audience and any key.
            "sasl.oauthbearer.jwt.validator.class": f"{_BEARER}.BrokerJwtValidator",
            "sasl.oauthbearer.jwks.endpoint.url": self._key_set_url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            # A session may not outlive its token: the broker then closes the connection.
            "listener.name.oauth.oauthbearer.connections.max.reauth.ms": "3600000",
        }


class TokenEndpoint:
    """A token endpoint as RFC 6749 has it, for one client, with a signing key of its own.

    Attributes:
        url: Its address.
        life_s: Of the tokens that it gives from now on.
        given: How many it has given.
    """

    def __init__(self):
        self.life_s, self.given = 300, 0
        self._key = rsa.generate_private_key(65537, 2048)
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, answer = endpoint.answer(parse_qs(form), self.headers["Authorization"])
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Say nothing."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self.url = f"http://{HOST}:{self._server.server_address[1]}/token"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    @property
    def key_set(self):
        """The public key as a JSON Web Key Set."""
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "test", "alg": "RS256", "use": "sig"}
        return {"keys": [key | {"n": _number(numbers.n), "e": _number(numbers.e)}]}

    def answer(self, form, authorization):
        """Return status and answer to a request for a token."""
        expected = base64.b64encode(f"worker:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {expected}":
            # Some say more than they should.
            return 401, {"error": "invalid_client", "error_description": authorization}
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        self.given += 1
        token = self.token(scope=form.get("scope", ["all"])[0])
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": self.life_s}
        return 200, answer

    def token(self, **claims):
        """Return a signed token for the worker; ``claims`` replace its own."""
        now = int(time.time())  # noqa: TID251 - a token names the time of day
        own = {
            "sub": "worker",
            "scope": "all",
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + self.life_s,
        }
        head = {"alg": "RS256", "kid": "test", "typ": "JWT"}
        signed = ".".join(_text(json.dumps(it).encode()) for it in (head, own | claims))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_text(signature)}"


def _text(content):
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _number(number):
    return _text(number.to_bytes((number.bit_length() + 7) // 8))


@contextmanager
def secure_kafka(folder):
    """Yield a ``SecureKafka``, stopped at the end."""
    running = SecureKafka(folder)
    try:
        yield running
    finally:
        running.stop()
