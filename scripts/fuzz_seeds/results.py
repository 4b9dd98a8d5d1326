"""Results of other tools, and runs of ours."""

import glob
import json
import pathlib

from common import LONGEST, compact, objects
from faults import neighbours, spoiled, swapped, with_edits
from schema import Schema


def imports():
    """The files as a whole, or their begin and their end, with faults: the format is detected."""
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
        yield from (b"\xff" + text.encode() for text in texts)


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
