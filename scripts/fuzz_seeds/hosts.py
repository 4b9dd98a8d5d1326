"""Files of recorded hosts and of tests, each in place of what its host has (fuzz/src/said.rs)."""

import json
import pathlib
import re

from common import objects, sources
from faults import neighbours, spoiled, swapped, with_edits

# In the order of fuzz/src/said.rs, which has a host without files after them.
HOSTS = ("server", "vm")
# Lengths to which bytes are cut.
CUTS = 32


def hosts():
    """All of them."""
    yield from recorded()
    yield from tested()


def recorded():
    """Each file as it is, missing, and with faults; of files whose paths differ in numbers the first."""
    seen = set()
    others = neighbours("crates/host/src/inventory/*.rs")
    for number, name in enumerate(HOSTS):
        root = pathlib.Path("crates/host/testdata") / name
        for file in sorted(root.rglob("*")):
            path = str(file.relative_to(root))
            shape = (number, re.sub(r"\d+", "0", path))
            if shape in seen:
                continue
            seen.add(shape)
            for end, contents in answers(path, file, others):
                yield bytes([number]) + end.encode()
                yield from (bytes([number]) + end.encode() + b"\n" + content for content in contents)
                # On a host without other files.
                yield from (bytes([len(HOSTS)]) + end.encode() + b"\n" + content for content in contents[:1])


def tested():
    """Hosts without files but those of a test, `("path", "content")`, each of these also missing and with faults."""
    for source in sources("crates/host/src/**/*.rs"):
        for block in re.findall(r'\[\s*(?:\(\s*"[\w./-]+",\s*"(?:[^"\\]|\\.)*"\s*\),?\s*)+\]', source):
            files = {path: json.loads(f'"{text}"') for path, text in re.findall(r'\(\s*"([\w./-]+)",\s*"((?:[^"\\]|\\.)*)"', block)}
            for path, text in files.items():
                rest = [f"{other}\n{content}".encode() for other, content in files.items() if other != path]
                for changed in (path, *(f"{path}\n{changed}" for changed in with_edits([text]))):
                    yield bytes([len(HOSTS)]) + b"\xff".join((*rest, changed.encode()))


def answers(path, file, others):
    """What a host may answer for a path: the end of the question, and contents."""
    if file.is_symlink():
        target = "/" + str(file.resolve().relative_to(file.parents[len(pathlib.Path(path).parts) - 1].resolve()))
        yield path + "@", edited(target)
    elif file.is_dir():
        names = sorted(inner.name for inner in file.iterdir())
        yield path + "/", edited("\n".join(names))
    elif path == "lldpd":
        document = json.loads(file.read_text())
        yield path, [text.encode() for place, _ in objects(document) for text in spoiled(document, place)]
    elif path.startswith("netlink/"):
        yield path, list(netlink(file.read_text()))
    else:
        content = file.read_bytes()
        try:
            text = content.decode()
            yield path, edited(text) + [changed.encode() for changed in swapped(text, others)]
        except UnicodeDecodeError:
            yield path, list(cut(content))


def edited(text):
    return [changed.encode() for changed in with_edits([text])]


def netlink(text):
    """Each message of an answer, whole and cut."""
    for message in text.split("\n\n"):
        lines = (line.split("#")[0] for line in message.split("\n"))
        try:
            content = bytes.fromhex(" ".join(lines))
        except ValueError:
            # An error number.
            continue
        yield from cut(content)


def cut(content):
    """Bytes, and shorter ones."""
    yield content
    yield from (content[:length] for length in range(0, len(content), max(1, len(content) // CUTS)))
