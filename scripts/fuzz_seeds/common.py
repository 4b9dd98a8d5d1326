"""What all inputs are made of."""

import glob
import json
import pathlib

# Longest input, bytes, as in fuzz.sh.
LONGEST = 4096


def sources(*patterns):
    """The texts of files."""
    return [pathlib.Path(name).read_text() for pattern in patterns for name in sorted(glob.glob(pattern, recursive=True))]


def compact(document):
    return json.dumps(document, separators=(",", ":"))


def objects(value, path=()):
    """The objects in a value, each with its path; of a list the first two."""
    if isinstance(value, dict):
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ():
        yield from objects(inner, (*path, key))


def value_at(document, path):
    """What is at the path."""
    for key in path:
        document = document[key]
    return document


def put(message, path, value):
    """A copy of the message with another value at the path."""
    if not path:
        return value
    copy = message.copy()
    copy[path[0]] = put(message[path[0]], path[1:], value)
    return copy
