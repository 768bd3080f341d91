"""The table `[rest]`: where users are served over HTTP, and whose tokens are taken."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from grms.daemon.config_base import FilePath, Model, Seconds, wrong
from grms.site.config.connections import Address
from grms.util.names import is_loopback

Word = Annotated[str, Field(min_length=1, max_length=256)]


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise wrong(f"{value!r} is no URL: {error}") from error
    if not host or parts.scheme not in {"https", "http"}:
        raise wrong(f"{value!r} is no URL that begins with https://")
    if any(not 32 < ord(each) < 127 for each in value) or "#" in value or "@" in parts.netloc:
        raise wrong(f"{value!r} has a blank, a fragment or a user, which no address of keys has")
    if parts.scheme == "http" and not is_loopback(host):
        raise wrong(f"{value!r} is not https://, and anybody on the way could give other keys")
    return value


class RestIssuerConfig(Model):
    """Whose tokens are taken.

    Attributes:
        issuer: the claim `iss`.
        audience: has to be in the claim `aud`.
        algorithm: of all its signatures.
        keys: file of its keys: a public key in PEM form or a JSON Web Key Set, of HS256 the secret.
        jwks: URL of its keys, a JSON Web Key Set, in place of `keys`; HTTPS, or on loopback.
        user_claim: the claim that names the user.
        users: this site's users by the value of that claim.
        claim_is_user: the value itself is the name of this site's user.
        scope_claim: the claim with the scopes.
        read_scope: is needed for looking at jobs.
        write_scope: is needed for submitting and cancelling them.
        other_scopes: further ones that a token may have.
        lifetime_max_s: longest time for which a token may be valid, seconds.
    """

    issuer: Word
    audience: Word
    algorithm: Literal["HS256", "RS256", "ES256"]
    keys: FilePath | None = None
    jwks: Annotated[str, AfterValidator(_url)] | None = None
    user_claim: Word = "sub"
    users: dict[Word, Word] = Field(default_factory=dict)
    claim_is_user: bool = False
    scope_claim: Word = "scope"
    read_scope: Word = "jobs:read"
    write_scope: Word = "jobs:write"
    other_scopes: list[Word] = Field(default_factory=list)
    lifetime_max_s: Seconds = 86400.0

    @model_validator(mode="after")
    def _check_users(self) -> Self:
        if self.claim_is_user == bool(self.users):
            raise wrong("needs either users, by the values of user_claim, or claim_is_user = true")
        if (self.keys is None) == (self.jwks is None):
            raise wrong("needs either keys, a file, or jwks, the URL of a key set")
        if self.jwks is not None and self.algorithm == "HS256":
            raise wrong("the secret of HS256 is in a file (keys), and at no URL (jwks)")
        return self


class RestConfig(Model):
    """The HTTP interface for users.

    Attributes:
        listen: host and port; not only loopback with a certificate.
        certificate: of the server, with those between it and its authority; without it TLS is a proxy's.
        key: of that.
        issuers: whose tokens are taken.
    """

    listen: Address
    certificate: FilePath | None = None
    key: FilePath | None = None
    issuers: Annotated[list[RestIssuerConfig], Field(min_length=1, max_length=64)]

    @model_validator(mode="after")
    def _check_all(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise wrong("certificate and key go together")
        names = [each.issuer for each in self.issuers]
        if len(set(names)) < len(names):
            raise wrong("issuers: two have the same name")
        return self
