"""Frames of control messages."""

import glob
import json
import pathlib
import struct

from common import objects
from schema import READERS, Schema


def messages(target, before):
    """Frames of control messages, `before` bytes behind the begin of an input."""
    schema, kinds = Schema(), {}
    for reader, name in enumerate(READERS if before else READERS[:1]):
        head = bytes([reader]) + b"\0" * (before - 1) if before else b""
        for text in schema.everywhere([(kind, {"say": say}) for say, kind in schema.messages[name]]):
            yield head + struct.pack(">I", len(text.encode())) + text.encode()
    for name in sorted(glob.glob(f"fuzz/corpus/{target}/*")):
        given = pathlib.Path(name).read_bytes()
        try:
            (length,) = struct.unpack_from(">I", given, before)
            message = json.loads(given[before + 4 : before + 4 + length])
        except (struct.error, ValueError):
            continue
        if isinstance(message, dict) and isinstance(message.get("say"), str):
            # The first byte of `frames` chooses the reader.
            kind = (given[0] % 4 if before else 0, message["say"])
            known = len({word for _, inner in objects(message) for word in inner} & schema.words)
            kinds.setdefault(kind, []).append((known, -length, name, given[:before], message))
    for _, found in sorted(kinds.items()):
        # The fullest one, in one piece.
        _, _, _, given, message = max(found, key=lambda one: one[:3])
        head = given[:1] + b"\0" * (before - 1) if before else b""
        for text in schema.texts(message):
            yield head + struct.pack(">I", len(text.encode())) + text.encode()
