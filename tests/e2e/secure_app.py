"""A deployment whose processes log in, as a user with the rights that a test gives."""

import asyncio

from tests.e2e import acls
from tests.e2e.secure import SECRETS
from tests.e2e.workers import Deployment

#: Of a refusal, which must come at once; starting Python is part of it.
SECONDS = 30
USER = "User:worker"


class SecureApp(Deployment):
    def __init__(self, kafka, folder, **how):
        super().__init__(kafka.broker, folder, **how)
        self.kafka, self.login = kafka, {}

    def grant(self, *rights):
        asyncio.run(acls.grant(self.bootstrap, USER, rights))

    def revoke(self, right):
        asyncio.run(acls.revoke(self.bootstrap, USER, right))

    def by(self, login, **changes):
        """Have processes started from now on log in so."""
        self.login = self.kafka.client(login, **changes)
        return self

    def environment(self, **settings):
        return super().environment(**settings) | self.login

    def says(self, *arguments):
        """Run a verb to its end, and return its exit code and all that it said."""
        done = self.run(*arguments, within_s=SECONDS)
        return done.returncode, without_secrets(done.stdout + done.stderr)


def without_secrets(said):
    for secret in SECRETS:
        assert secret not in said
    return said
