"""Signed tokens (JWT, RFC 7519) that say for which user of this site a program speaks.

A token is good where its issuer and audience are configured, its signature is made with the issuer's one algorithm (what the
token says of itself chooses no algorithm, and `none` is none), it is neither expired nor early nor valid for too long, its
claim names a mapped user, and its scopes are enough for what is asked and give nothing else. Needs the extra `rest`.
"""

import re
import stat
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from lrms_sim.util.files import read_bytes
from lrms_sim.util.messages import printable, shorten

Algorithm = Literal["HS256", "RS256", "ES256"]

TOKEN_BYTES_MAX: Final = 8192
"""Longest token."""

SECRET_BYTES_MIN: Final = 32
"""Shortest secret of HS256 (RFC 7518, section 3.2)."""

RSA_BITS_MIN: Final = 2048
"""Shortest key of RS256 (RFC 7518, section 3.3)."""

LEEWAY_S: Final = 10
"""By how much an issuer's clock may differ, seconds."""

KEYS_BYTES_MAX: Final = 1 << 20
"""Longest file of keys."""

CACHED_MAX: Final = 4096
"""Most tokens that are remembered."""

SHOWN_MAX: Final = 60
"""Most characters that are shown of a claim."""

_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)


class TokenFlaw(StrEnum):
    """Why a token is refused; the words are those of the metrics."""

    MALFORMED = "token_malformed"
    ISSUER = "token_issuer"
    AUDIENCE = "token_audience"
    ALGORITHM = "token_algorithm"
    KEY = "token_key"
    SIGNATURE = "token_signature"
    EXPIRED = "token_expired"
    EARLY = "token_early"
    LIFETIME = "token_lifetime"
    CLAIM = "token_claim"
    UNMAPPED = "token_unmapped"
    SCOPE = "token_scope"
    PRIVILEGED = "token_privileged"


class ChangingKeys(Mapping[str, Any]):
    """Keys of an issuer by their `kid`, which are others at times."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Another number whenever they have changed."""

    @property
    @abstractmethod
    def problem(self) -> str:
        """Why they are not as new as they should be; empty if they are."""

    @abstractmethod
    async def renewed(self) -> bool:
        """Looks for newer ones, if that was not done a moment ago; returns whether they have changed."""


class TokenError(ValueError):
    """A token that is refused; `flaw` says why in a word.

    `keys` are those among which its own is not, if newer ones may have it.
    """

    def __init__(self, flaw: TokenFlaw, text: str, keys: ChangingKeys | None = None) -> None:
        super().__init__(text)
        self.flaw = flaw
        self.keys = keys


class KeysError(Exception):
    """A file of keys that cannot be used."""


@dataclass(frozen=True, slots=True)
class Scopes:
    """Words of a token's scope claim.

    Attributes:
        claim: its name; the value is one text with spaces between the words, or a list.
        read: is needed for looking at jobs.
        write: is needed for submitting and cancelling.
        others: may be there as well; any other makes a token one that is good for too much.
    """

    claim: str = "scope"
    read: str = "jobs:read"
    write: str = "jobs:write"
    others: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Issuer:
    """Whose tokens are taken, and what they mean.

    Attributes:
        name: the claim `iss`.
        audience: has to be in the claim `aud`.
        algorithm: of all its signatures.
        keys: by their `kid`; the one key of a file of another form has none.
        user_claim: names the user.
        users: this site's users by the value of that claim; `None` where the value is the user.
        lifetime_max_s: of a token, from `iat` to `exp`, seconds.
    """

    name: str
    audience: str
    algorithm: Algorithm
    keys: Mapping[str, Any] = field(repr=False)
    user_claim: str = "sub"
    users: Mapping[str, str] | None = None
    scopes: Scopes = Scopes()
    lifetime_max_s: float = 86400.0


@dataclass(frozen=True, slots=True)
class Bearer:
    """For whom a token speaks.

    Attributes:
        user: of this site.
        reads, writes: what the token allows.
        end_s: moment of its end, seconds since 1970.
        is_mapped: the site's file names the user, and not the issuer alone.
    """

    user: str
    reads: bool
    writes: bool
    end_s: float
    is_mapped: bool


class TokenCheck:
    """Checks tokens of some issuers; those found good are remembered until their end.

    Raises:
        ValueError: two issuers have one name.
    """

    def __init__(self, issuers: Sequence[Issuer]) -> None:
        self._issuers = {issuer.name: issuer for issuer in issuers}
        if len(self._issuers) != len(issuers):
            raise ValueError("two issuers of tokens have the same name")
        self._known: dict[str, Bearer] = {}
        self._changing = [each.keys for each in issuers if isinstance(each.keys, ChangingKeys)]
        self._versions: list[int] = []

    def bearer(self, token: str, now_s: float) -> Bearer:
        """Returns for whom a token speaks; `now_s` is the present moment, seconds since 1970, for those known already.

        Raises:
            TokenError: it is refused.
        """
        versions = [each.version for each in self._changing]
        if versions != self._versions:
            self._known.clear()  # a key may be gone that has signed one
            self._versions = versions
        known = self._known.get(token)
        if known is not None and now_s < known.end_s:
            return known
        self._known.pop(token, None)
        found = self._checked(token)
        if len(self._known) >= CACHED_MAX:
            del self._known[next(iter(self._known))]
        self._known[token] = found
        return found

    def _checked(self, token: str) -> Bearer:
        if len(token) > TOKEN_BYTES_MAX or not _COMPACT.fullmatch(token):
            raise TokenError(TokenFlaw.MALFORMED, "it is no token: three parts with dots between")
        try:
            peeked = jwt.decode_complete(token, options={"verify_signature": False})
        except (jwt.PyJWTError, RecursionError) as error:
            raise TokenError(TokenFlaw.MALFORMED, "its parts are no header and claims") from error
        claims, header = peeked["payload"], peeked["header"]
        name = claims.get("iss")
        issuer = self._issuers.get(name) if isinstance(name, str) else None
        if issuer is None:
            raise TokenError(TokenFlaw.ISSUER, f"its issuer {_shown(name)} is not known here")
        if header.get("alg") != issuer.algorithm:
            text = f"its signature is {_shown(header.get('alg'))}; {issuer.algorithm} is expected"
            raise TokenError(TokenFlaw.ALGORITHM, text)
        return _bearer(_verified(token, issuer, _key(issuer, header.get("kid"))), issuer)


def _key(issuer: Issuer, kid: object) -> Any:
    if "" in issuer.keys:
        return issuer.keys[""]
    if kid is None and len(issuer.keys) == 1:
        return next(iter(issuer.keys.values()))
    key = issuer.keys.get(kid) if isinstance(kid, str) else None
    if key is None:
        changing = issuer.keys if isinstance(issuer.keys, ChangingKeys) else None
        text = f"its key {_shown(kid)} is none of its issuer's"
        raise TokenError(TokenFlaw.KEY, text, changing)
    return key


_FLAWS: Final = (
    (jwt.ExpiredSignatureError, TokenFlaw.EXPIRED, "it has expired"),
    (jwt.ImmatureSignatureError, TokenFlaw.EARLY, "it is not valid yet"),
    (jwt.InvalidAudienceError, TokenFlaw.AUDIENCE, "it is for another audience"),
    (jwt.InvalidIssuerError, TokenFlaw.ISSUER, "it is of another issuer"),
    (jwt.InvalidSignatureError, TokenFlaw.SIGNATURE, "its signature is not its issuer's"),
    (jwt.InvalidAlgorithmError, TokenFlaw.ALGORITHM, "its signature is of another kind"),
    (jwt.InvalidKeyError, TokenFlaw.KEY, "its key is not of its algorithm"),
    (jwt.MissingRequiredClaimError, TokenFlaw.CLAIM, "a claim is missing"),
    (jwt.DecodeError, TokenFlaw.MALFORMED, "it cannot be read"),
    (jwt.PyJWTError, TokenFlaw.CLAIM, "a claim is wrong"),
)
"""In this order: later ones are more general."""


def _verified(token: str, issuer: Issuer, key: Any) -> Mapping[str, Any]:
    try:
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[issuer.algorithm],
            audience=issuer.audience,
            issuer=issuer.name,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iat", "iss", "aud"]},
        )
    except jwt.PyJWTError as error:
        flaw, text = next((flaw, text) for kind, flaw, text in _FLAWS if isinstance(error, kind))
        if flaw is TokenFlaw.CLAIM:
            text = f"{text}: {error}"
        raise TokenError(flaw, text) from error
    except (ValueError, OverflowError, TypeError) as error:  # of moments that are no numbers
        raise TokenError(TokenFlaw.CLAIM, f"a claim is wrong: {error}") from error
    return claims


def _bearer(claims: Mapping[str, Any], issuer: Issuer) -> Bearer:
    try:
        end_s, begin_s = float(claims["exp"]), float(claims["iat"])
    except (ValueError, OverflowError, TypeError) as error:
        raise TokenError(TokenFlaw.CLAIM, "exp or iat is no moment") from error
    if not end_s - begin_s <= issuer.lifetime_max_s:
        text = f"it is valid for {end_s - begin_s:g} s; {issuer.lifetime_max_s:g} s are allowed"
        raise TokenError(TokenFlaw.LIFETIME, text)
    value = claims.get(issuer.user_claim)
    if not isinstance(value, str) or not value:
        raise TokenError(TokenFlaw.CLAIM, f"its claim {issuer.user_claim} names nobody")
    user = value if issuer.users is None else issuer.users.get(value)
    if user is None:
        text = f"{issuer.user_claim} {_shown(value)} is mapped to no user of this site"
        raise TokenError(TokenFlaw.UNMAPPED, text)
    scopes, words = issuer.scopes, _words(claims.get(issuer.scopes.claim))
    if more := sorted(words - {scopes.read, scopes.write} - scopes.others):
        text = f"it is good for more than this site's jobs: scope {_shown(more[0])}"
        raise TokenError(TokenFlaw.SCOPE, text)
    is_mapped = issuer.users is not None
    return Bearer(user, scopes.read in words, scopes.write in words, end_s, is_mapped)


def _words(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return frozenset(value)
    if value is None:
        return frozenset()
    raise TokenError(TokenFlaw.CLAIM, "its scopes are neither a text nor a list of texts")


def _shown(value: object) -> str:
    return shorten(printable(repr(value)), SHOWN_MAX)


def read_keys(path: Path, algorithm: Algorithm) -> dict[str, Any]:
    """Returns the keys in a file: a secret (HS256), a public key in PEM form, or a JSON Web Key Set by `kid`.

    Raises:
        KeysError: it is unreadable, holds no such key, a private or too short one, or others can read the secret.
    """
    content = read_bytes(path, KEYS_BYTES_MAX, KeysError)
    if algorithm == "HS256":
        return {"": _secret(path, content)}
    if content.lstrip().startswith(b"{"):
        return key_set(str(path), content, algorithm)
    try:
        key = jwt.get_algorithm_by_name(algorithm).prepare_key(content)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise KeysError(f"{path}: holds no public key of {algorithm} in PEM form") from error
    _check_public(str(path), key, algorithm)
    return {"": key}


def _secret(path: Path, content: bytes) -> Any:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        text = f"{path}: has mode {mode:04o}, so that others can make tokens; chmod 600 {path}"
        raise KeysError(text)
    secret = content.rstrip(b"\r\n")
    if len(secret) < SECRET_BYTES_MIN:
        text = f"{path}: is a secret of {len(secret)} bytes; at least {SECRET_BYTES_MIN} are needed"
        raise KeysError(text)
    try:
        return jwt.get_algorithm_by_name("HS256").prepare_key(secret)
    except jwt.PyJWTError as error:
        # A public key as a secret is what anybody knows.
        raise KeysError(f"{path}: is a key or a certificate, and no secret") from error


def key_set(where: str, content: bytes, algorithm: Algorithm) -> dict[str, Any]:
    """Returns the public keys of a JSON Web Key Set by their `kid`; `where` it is, is for messages.

    Raises:
        KeysError: it is none, or holds no key of the algorithm for signatures, a private or too short one.
    """
    found: dict[str, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            keys = jwt.PyJWKSet.from_json(content.decode()).keys
    except (jwt.PyJWTError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise KeysError(f"{where}: holds no JSON Web Key Set: {error}") from error
    kind = {"RS256": "RSA", "ES256": "EC"}[algorithm]
    for each in keys:
        if each.key_type != kind or each.public_key_use not in {None, "sig"}:
            continue
        if each.algorithm_name != algorithm:
            continue
        if not each.key_id:
            raise KeysError(f"{where}: a key has no kid")
        if each.key_id in found:
            raise KeysError(f"{where}: the kid {each.key_id!r} comes twice")
        _check_public(where, each.key, algorithm)
        found[each.key_id] = each.key
    if not found:
        raise KeysError(f"{where}: holds no key of {algorithm} for signatures")
    return found


def _check_public(where: str, key: object, algorithm: Algorithm) -> None:
    if algorithm == "RS256":
        if not isinstance(key, rsa.RSAPublicKey):
            raise KeysError(f"{where}: must be the public key of {algorithm}")
        if key.key_size < RSA_BITS_MIN:
            text = f"{where}: has {key.key_size} bits; at least {RSA_BITS_MIN} are needed"
            raise KeysError(text)
    elif not (isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp256r1"):
        raise KeysError(f"{where}: must be the public key of {algorithm}, on the curve P-256")
