"""Results of other tools, and runs of ours."""

import glob
import json
import pathlib
import re

from common import LONGEST, compact, objects, sources
from faults import neighbours, spoiled, swapped, with_edits
from schema import Schema


def imports():
    """The files of the importers' tests as a whole, or their begin and their end, and the texts in their sources, with faults: the format
    is detected. Each of these is also read in each format."""
    others = neighbours("crates/import/src/**/*.rs")
    for name in sorted(glob.glob("crates/import/tests/data/*")):
        file = pathlib.Path(name).read_bytes()
        most = LONGEST - 1
        try:
            texts = json_files(json.loads(file))
        except ValueError:
            texts = [file[:most].decode("utf-8", "replace")]
            if len(file) > most:
                head, tail = texts[0][:1000], file[-3000:].decode("utf-8", "replace")
                texts.append(head[: head.rfind("\n") + 1] + tail[tail.find("\n") + 1 :])
            texts = [*with_edits(texts), *(changed for text in texts for changed in swapped(text, others))]
        yield from detected(texts)
        yield from chosen(file[:most])
    texts = list(literals("crates/import/tests/*.rs", "crates/import/src/**/*.rs"))
    yield from detected(with_edits(texts))
    for text in texts:
        yield from chosen(text.encode())


def detected(texts):
    """Inputs whose format is detected."""
    return (b"\xff" + text.encode() for text in texts)


def chosen(text):
    """A text in each format."""
    return (bytes([number]) + text for number in range(len(glob.glob("crates/import/src/formats/*.rs"))))


def literals(*patterns):
    """The texts of several lines or columns in sources of Rust."""
    escapes = {"n": "\n", "t": "\t", "r": "\r", "x20": " "}
    for source in sources(*patterns):
        for text in re.findall(r'(?<!r)"((?:[^"\\]|\\.)*)"', source, re.S):
            text = re.sub(r"\\\n\s*", "", text)
            text = re.sub(r"\\(x20|.)", lambda escaped: escapes.get(escaped[1], escaped[1]), text)
            if re.search(r"\S[\n\t]\S", text) or text.count(" ") > 3:
                yield text


def json_files(document):
    """A document of another tool with short lists, and with faults in each object; one that is too long in parts."""
    least = {key: value for key, value in document.items() if len(compact(value)) < LONGEST // 4}
    seen = set()
    for items in (1, 2):
        whole = shortened(document, items)
        for part in [whole] if len(compact(whole)) < LONGEST else [{**shortened(least, 1), key: whole[key]} for key in whole]:
            yield compact(part)
            for path, given in objects(part):
                kind = (*(key for key in path if isinstance(key, str)), frozenset(given))
                if kind not in seen:
                    seen.add(kind)
                    yield from spoiled(part, path)
    if document.get("outcomes"):
        # A run of ours.
        schema = Schema()
        yield from schema.everywhere([(schema.run, {"schema": document["schema"]})])


def shortened(value, items):
    """A value with at most so many items in each list."""
    if isinstance(value, dict):
        return {key: shortened(inner, items) for key, inner in value.items()}
    return [shortened(inner, items) for inner in value[:items]] if isinstance(value, list) else value
