"""Texts and documents with one fault each."""

import random
import re

from common import compact, put, sources, value_at

# Values of which a field takes few.
WRONG = (None, True, 0, -1, 1.5, 10**19, "", "x", [], ["x"], [[]], [{}], {}, {"a": 1})
# Words in place of one in a line.
WORDS = ("", "x", "-", "-1", "0", "1.5e3", "99999999999999999999", "1:2", "a=1")
# Places in a line that get other words.
PLACES = 4
# Lines of a source between names of the same kind.
NEAR = 8
# What stands for a text that is put in later.
MARK = "<mark>"


def with_edits(texts):
    """Each text once, and edited in lines that those before lack."""
    seen = set()
    for text in dict.fromkeys(texts):
        yield text
        yield from edited(text, seen)


def edited(text, seen):
    """A text without each of its lines, with each twice, and with other words in it; not for lines that differ from `seen` in numbers."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        shape = re.sub(r"\d+", "0", line)
        if not line.strip() or shape in seen:
            continue
        seen.add(shape)
        before, after = lines[:at], lines[at + 1 :]
        changed = [[], [line, line], [line[: len(line) // 2]]]
        places = [match.span() for match in re.finditer(r"[^\s,;=:()]+", line)]
        for begin, end in random.sample(places, min(len(places), PLACES)):
            changed += [[line[:begin] + word + line[end:]] for word in random.sample(WORDS, 3)]
        yield from ("\n".join((*before, *new, *after)) for new in changed)


def neighbours(pattern):
    """For each short string of the sources the strings within a few lines of it: often other names of the same kind, such as units."""
    found = {}
    for source in sources(pattern):
        lines = [re.findall(r'"([^"\\\s{}]{1,16})"', line) for line in source.split("\n")]
        for at, words in enumerate(lines):
            near = {word for line in lines[max(0, at - NEAR) : at + NEAR + 1] for word in line}
            for word in words:
                found.setdefault(word, set()).update(near - {word})
    return found


def swapped(text, others):
    """A text with each of its words once in place of it by each of its `others`, of a word that occurs often in its first place."""
    for word in sorted(set(re.findall(r"[^\s,;=()\[\]\"]+", text)) & set(others)):
        before, after = text.split(word, 1)
        yield from (before + other + after for other in sorted(others[word]))


def spoiled(document, path):
    """JSON texts of a document whose object at the path has a field that nobody knows, or lacks each of its fields, has it twice, under a
    name that is nearly right, with escapes, or with a value of another type."""
    given = value_at(document, path)
    yield compact(put(document, path, {**given, "unknown": 1}))
    for field, value in given.items():
        rest = {other: inner for other, inner in given.items() if other != field}
        yield compact(put(document, path, rest))
        yield compact(put(document, path, {**given, field[:-1] + "~": value}))
        # A name that is no other one stands for the field until the text is made.
        marked = compact(put(document, path, {**rest, MARK: value}))
        yield compact(put(document, path, {**given, MARK: value})).replace(MARK, field)
        yield marked.replace(MARK, escaped(field))
        yield marked.replace(MARK, escaped(field[:-1] + "~"))
        yield from misspelt(document, (*path, field), value)
        yield from (compact(put(document, path, {**given, field: wrong})) for wrong in WRONG)


def misspelt(document, path, value):
    """JSON texts of a document with a text at the path that is nearly `value`, with escapes, and both."""
    if isinstance(value, str) and value:
        text = compact(put(document, path, MARK))
        yield from (text.replace(MARK, one) for one in (escaped(value), value[:-1] + "~", escaped(value[:-1] + "~")))


def escaped(text):
    """A text with an escape for its first letter. JSON is read in place without one, and copied with one."""
    return f"\\u{ord(text[0]):04x}{text[1:]}"
