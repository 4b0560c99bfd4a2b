"""sprig's passwords and AES. Without a bcrypt library ``bcrypt`` and ``htpasswd`` refuse, and say so."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from collections.abc import Mapping

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind
from syncline.kube.gotemplate.sprig.crypto.budget import Budget
from syncline.kube.gotemplate.sprig.text.encoding import CorruptError, decode64
from syncline.kube.gotemplate.values import decode, encode

STRING = Kind.STRING

BLOCK = 16
MAX_BCRYPT = 72
PASSWORD_UNITS = 4
_SEED = b"com.lyndir.masterpassword"
_LETTERS = {
    "V": "AEIOU",
    "C": "BCDFGHJKLMNPQRSTVWXYZ",
    "v": "aeiou",
    "c": "bcdfghjklmnpqrstvwxyz",
    "A": "AEIOUBCDFGHJKLMNPQRSTVWXYZ",
    "a": "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
    "n": "0123456789",
    "o": "@&%?,=[]_:-+*$#!'^~;()/.",
    "x": "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
}
_SHAPES = {
    "maximum": "anoxxxxxxxxxxxxxxxxx axxxxxxxxxxxxxxxxxno",
    "long": "CvcvnoCvcvCvcv CvcvCvcvnoCvcv CvcvCvcvCvcvno CvccnoCvcvCvcv CvccCvcvnoCvcv CvccCvcvCvcvno CvcvnoCvccCvcv "
    "CvcvCvccnoCvcv CvcvCvccCvcvno CvcvnoCvcvCvcc CvcvCvcvnoCvcc CvcvCvcvCvccno CvccnoCvccCvcv CvccCvccnoCvcv "
    "CvccCvccCvcvno CvcvnoCvccCvcc CvcvCvccnoCvcc CvcvCvccCvccno CvccnoCvcvCvcc CvccCvcvnoCvcc CvccCvcvCvccno",
    "medium": "CvcnoCvc CvcCvcno",
    "short": "Cvcn",
    "basic": "aaanaaan aannaaan aaannaaa",
    "pin": "nnnn",
}
"""Shapes of passwords by type, from the algorithm of Master Password."""


def _derive(counter: int, kind: str, password: str, user: str, site: str) -> str:
    """Derive a password from a master password: the same for the same arguments."""
    if kind not in _SHAPES:
        return f"cannot find password template {kind}"
    salt = _SEED + _sized(user)
    key = hashlib.scrypt(encode(password), salt=salt, n=32768, r=8, p=2, maxmem=1 << 27, dklen=64)
    seed = hmac.digest(key, _SEED + _sized(site) + struct.pack(">I", counter), "sha256")
    shapes = _SHAPES[kind].split()
    shape = shapes[seed[0] % len(shapes)]
    return "".join(_LETTERS[sort][byte % len(_LETTERS[sort])] for sort, byte in zip(shape, seed[1:]))


def _sized(text: str) -> bytes:
    data = encode(text)
    return struct.pack(">I", len(data)) + data


def _bcrypt(password: str) -> str:
    if len(encode(password)) > MAX_BCRYPT:
        return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
    raise FunctionError(
        "bcrypt is not available: hash the password outside of the template (htpasswd -nB) and refer to its Secret"
    )


def _htpasswd(user: str, password: str) -> str:
    return f"invalid username: {user}" if ":" in user else f"{user}:{_bcrypt(password)}"


def _key(password: str) -> bytes:
    return encode(password)[:32].ljust(32, b"\0")


def _decrypt(password: str, text: str) -> str:
    """Undo ``encryptAES``: AES-256-CBC, the vector first, in base64."""
    if not text:
        return ""
    try:
        data = decode64(text)
    except CorruptError as error:
        raise FunctionError(str(error)) from None
    if len(data) < BLOCK:
        room = len(text.replace("\n", "").replace("\r", "")) // 4 * 3
        if room < BLOCK:
            raise FunctionError(f"runtime error: slice bounds out of range [:{BLOCK}] with capacity {room}")
        raise FunctionError(f"runtime error: slice bounds out of range [{BLOCK}:{len(data)}]")
    if len(data) % BLOCK:
        raise FunctionError("crypto/cipher: input not full blocks")
    if len(data) == BLOCK:
        raise FunctionError("runtime error: index out of range [-1]")
    padded = _cipher(_key(password), data[:BLOCK], data[BLOCK:], encrypts=False)
    size = len(padded) - padded[-1]
    if size < 0:
        raise FunctionError(f"runtime error: slice bounds out of range [:{size}]")
    return decode(padded[:size])


def _encrypt(password: str, text: str, vector: bytes) -> str:
    if not text:
        return ""
    data = encode(text)
    padding = BLOCK - len(data) % BLOCK
    made = _cipher(_key(password), vector, data + bytes([padding]) * padding, encrypts=True)
    return base64.b64encode(vector + made).decode()


def _cipher(key: bytes, vector: bytes, data: bytes, *, encrypts: bool) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # slow to import, rarely needed

    cipher = Cipher(algorithms.AES(key), modes.CBC(vector))
    step = cipher.encryptor() if encrypts else cipher.decryptor()
    return step.update(data) + step.finalize()


PASSWORDS: Mapping[str, Function] = {"decryptAES": Function(_decrypt, (STRING, STRING), result=STRING)}


def password_functions(entropy: Entropy, budget: Budget) -> Mapping[str, Function]:
    """Return the functions that draw, or that take long."""

    def derive(counter: int, kind: str, password: str, user: str, site: str) -> str:
        budget.take(PASSWORD_UNITS, "derivePassword")
        return _derive(counter, kind, password, user, site)

    def encrypt(password: str, text: str) -> str:
        return _encrypt(password, text, bytes(entropy.randrange(256) for _ in range(BLOCK)))

    return {
        "derivePassword": Function(derive, (Kind.UINT32, STRING, STRING, STRING, STRING), result=STRING),
        "encryptAES": Function(encrypt, (STRING, STRING), result=STRING),
        "bcrypt": Function(_bcrypt, (STRING,), result=STRING),
        "htpasswd": Function(_htpasswd, (STRING, STRING), result=STRING),
    }
