"""Tokens: which are good, and every kind that is not."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from grms.security.tokens import (
    TOKEN_BYTES_MAX,
    Issuer,
    KeysError,
    Scopes,
    TokenCheck,
    TokenError,
    TokenFlaw,
    read_keys,
)

RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
SECRET = b"0123456789abcdef0123456789abcdef"
NAME, AUDIENCE = "https://issuer.example", "hanse-north"


def public(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    """Returns a public key as PEM."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def issuer(**changes: Any) -> Issuer:
    """Returns an issuer that signs with RS256."""
    given: dict[str, Any] = {
        "name": NAME,
        "audience": AUDIENCE,
        "algorithm": "RS256",
        "keys": {"": RSA.public_key()},
        "users": {"subject-1": "ann"},
        "scopes": Scopes(others=frozenset({"openid"})),
    }
    return Issuer(**(given | changes))


def claims(**changes: Any) -> dict[str, Any]:
    """Returns the claims of a good token; those that are `None` are left out."""
    now = int(time.time())
    found: dict[str, Any] = {"iss": NAME, "aud": AUDIENCE, "sub": "subject-1", "iat": now}
    found |= {"exp": now + 600, "scope": "jobs:read jobs:write openid", **changes}
    return {name: value for name, value in found.items() if value is not None}


def token(key: Any = RSA, algorithm: str = "RS256", headers: Any = None, **changes: Any) -> str:
    """Returns a signed token."""
    return jwt.encode(claims(**changes), key, algorithm, headers)


def part(content: bytes) -> str:
    """Returns a part of a token."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def by_hand(header: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """Returns a token that no library would make."""
    text = f"{part(json.dumps(header).encode())}.{part(json.dumps(claims()).encode())}"
    return f"{text}.{part(sign(text.encode()))}"


def confused() -> str:
    """Returns a token of HS256 whose secret is the public key."""
    secret = public(RSA)
    return by_hand(
        {"alg": "HS256", "typ": "JWT"}, lambda text: hmac.digest(secret, text, hashlib.sha256)
    )


def check(*issuers: Issuer) -> TokenCheck:
    """Returns a check of issuers, or of the usual one."""
    return TokenCheck(issuers or (issuer(),))


def test_a_good_token_speaks_for_its_user() -> None:
    """Of each algorithm, and with scopes of both forms."""
    bearer = check().bearer(token(), time.time())
    assert (bearer.user, bearer.reads, bearer.writes) == ("ann", True, True)
    secret = issuer(algorithm="HS256", keys={"": SECRET})
    assert check(secret).bearer(token(SECRET, "HS256"), time.time()).user == "ann"
    curve = issuer(algorithm="ES256", keys={"": EC.public_key()}, users=None)
    assert check().bearer(token(), time.time()).is_mapped
    found = check(curve).bearer(token(EC, "ES256", sub="bob", scope=["jobs:read"]), time.time())
    assert (found.user, found.reads, found.writes) == ("bob", True, False)
    assert not found.is_mapped


HOUR_AGO = time.time() - 3600
BAD: dict[str, tuple[Callable[[], str], TokenFlaw]] = {
    "expired": (lambda: token(iat=HOUR_AGO, exp=HOUR_AGO + 60), TokenFlaw.EXPIRED),
    "not valid yet": (lambda: token(nbf=time.time() + 600), TokenFlaw.EARLY),
    "issued in the future": (lambda: token(iat=time.time() + 300), TokenFlaw.EARLY),
    "valid for too long": (lambda: token(exp=time.time() + 10**7), TokenFlaw.LIFETIME),
    "another issuer": (lambda: token(iss="https://other.example"), TokenFlaw.ISSUER),
    "an issuer that is no text": (lambda: token(iss=None), TokenFlaw.ISSUER),
    "another audience": (lambda: token(aud="hanse-south"), TokenFlaw.AUDIENCE),
    "no audience": (lambda: token(aud=None), TokenFlaw.CLAIM),
    "no end": (lambda: token(exp=None), TokenFlaw.CLAIM),
    "no begin": (lambda: token(iat=None), TokenFlaw.CLAIM),
    "an endless end": (lambda: token(exp=float("inf")), TokenFlaw.MALFORMED),
    "nobody": (lambda: token(sub=None), TokenFlaw.CLAIM),
    "unmapped": (lambda: token(sub="subject-2"), TokenFlaw.UNMAPPED),
    "good for too much": (lambda: token(scope="jobs:read admin"), TokenFlaw.SCOPE),
    "scopes of no form": (lambda: token(scope=7), TokenFlaw.CLAIM),
    "signed by nobody": (lambda: by_hand({"alg": "none"}, lambda _: b"x"), TokenFlaw.ALGORITHM),
    "none with other letters": (
        lambda: by_hand({"alg": "nOnE"}, lambda _: b"x"),
        TokenFlaw.ALGORITHM,
    ),
    "the public key as a secret": (confused, TokenFlaw.ALGORITHM),
    "another algorithm": (lambda: token(EC, "ES256"), TokenFlaw.ALGORITHM),
    "another key": (
        lambda: by_hand({"alg": "RS256"}, lambda _: b"0" * 256),
        TokenFlaw.SIGNATURE,
    ),
    "its own key in its header": (
        lambda: by_hand(
            {"alg": "RS256", "jwk": {"kty": "oct", "k": "AAAA"}, "jku": "https://other.example"},
            lambda _: b"0" * 256,
        ),
        TokenFlaw.SIGNATURE,
    ),
    "claims changed": (
        lambda: ".".join(
            (
                token().split(".")[0],
                part(json.dumps(claims()).encode() + b" "),
                token().split(".")[2],
            )
        ),
        TokenFlaw.SIGNATURE,
    ),
    "empty": (lambda: "", TokenFlaw.MALFORMED),
    "two parts": (lambda: "e30.e30", TokenFlaw.MALFORMED),
    "no signature": (lambda: "e30.e30.", TokenFlaw.MALFORMED),
    "no header": (lambda: "AAAA.e30.AAAA", TokenFlaw.MALFORMED),
    "too long": (lambda: token(more="x" * TOKEN_BYTES_MAX), TokenFlaw.MALFORMED),
    "an unknown critical header": (
        lambda: token(headers={"crit": ["more"], "more": 1}),
        TokenFlaw.MALFORMED,
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_token_is_refused(kind: str) -> None:
    """Each by its flaw, also when it comes again."""
    made, flaw = BAD[kind]
    bad, tokens = made(), check()
    for _ in range(2):
        with pytest.raises(TokenError) as error:
            tokens.bearer(bad, time.time())
        assert error.value.flaw is flaw, error.value


@given(st.text(max_size=80) | st.from_regex(r"e[\w-]{2,9}\.e[\w-]{2,9}\.[\w-]{1,9}"))
def test_no_text_is_more_than_refused(text: str) -> None:
    """Whatever is shown as a token."""
    with pytest.raises(TokenError):
        check().bearer(text, time.time())


def test_a_known_token_ends_in_time() -> None:
    """It is checked anew once its end has come."""
    tokens, begin = check(), time.time()
    good = token(iat=begin - 60, exp=begin + 600)
    assert tokens.bearer(good, begin) is tokens.bearer(good, begin + 1)
    assert tokens.bearer(good, begin) is not tokens.bearer(good, begin + 601)


def key_set(*keys: tuple[str, Any, dict[str, Any]]) -> bytes:
    """Returns a set of public keys."""
    found = []
    for kid, key, more in keys:
        kind = jwt.algorithms.RSAAlgorithm if key is RSA else jwt.algorithms.ECAlgorithm
        found.append({**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more})
    return json.dumps({"keys": found}).encode()


def test_keys_of_a_set_go_by_their_names(tmp_path: Path) -> None:
    """A token names one; with a key for encryption, or of another algorithm, none is checked."""
    path, other = tmp_path / "keys.json", ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(
        key_set(("a", EC, {}), ("b", other, {}), ("c", other, {"use": "enc"}), ("r", RSA, {}))
    )
    keys = read_keys(path, "ES256")
    assert set(keys) == {"a", "b"}
    tokens = check(issuer(algorithm="ES256", keys=keys))
    assert tokens.bearer(token(EC, "ES256", {"kid": "a"}), time.time()).user == "ann"
    for kid, flaw in (("b", TokenFlaw.SIGNATURE), ("c", TokenFlaw.KEY), (None, TokenFlaw.KEY)):
        headers = None if kid is None else {"kid": kid}
        with pytest.raises(TokenError) as error:
            tokens.bearer(token(EC, "ES256", headers), time.time())
        assert error.value.flaw is flaw


def test_keys_of_files_are_read(tmp_path: Path) -> None:
    """A public key, and a secret that others cannot read."""
    path = tmp_path / "key"
    path.write_bytes(public(RSA))
    assert set(read_keys(path, "RS256")) == {""}
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o600)
    assert read_keys(path, "HS256") == {"": SECRET}


WEAK = rsa.generate_private_key(65537, 1024)  # noqa: S505  # it is to be refused
PRIVATE = EC.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("content", "algorithm", "problem"),
    [
        (b"short", "HS256", "at least 32"),
        (public(RSA), "HS256", "no secret"),
        (public(EC), "RS256", "RS256"),
        (public(WEAK), "RS256", "1024 bits"),
        (public(ec.generate_private_key(ec.SECP384R1())), "ES256", "ES256"),
        (PRIVATE, "ES256", "public key"),
        (b"nothing", "RS256", "no public key"),
        (b"{}", "RS256", "Key Set"),
        (b'{"keys": []}', "RS256", "Key Set"),
        (key_set(("a", EC, {})), "RS256", "no key of RS256"),
        (key_set(("a", EC, {}), ("a", EC, {})), "ES256", "comes twice"),
        (key_set(("", EC, {})), "ES256", "no kid"),
    ],
)
def test_files_of_bad_keys_are_refused(
    tmp_path: Path, content: bytes, algorithm: Any, problem: str
) -> None:
    """By their names, with what is wrong."""
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(KeysError, match=problem):
        read_keys(path, algorithm)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """And a file that is not there."""
    path = tmp_path / "key"
    with pytest.raises(KeysError, match="cannot be read"):
        read_keys(path, "HS256")
    path.write_bytes(SECRET)
    path.chmod(0o644)
    with pytest.raises(KeysError, match="chmod 600"):
        read_keys(path, "HS256")


def test_two_issuers_have_two_names() -> None:
    """Else it would not be known whose key counts."""
    with pytest.raises(ValueError, match="same name"):
        TokenCheck([issuer(), issuer()])
