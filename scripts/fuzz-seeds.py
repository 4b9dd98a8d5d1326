#!/usr/bin/env python3
"""Inputs from which a coverage-guided test begins, beside its corpus: `fuzz-seeds.py TARGET FOLDER` writes each into a file of FOLDER.

plan, spec, topology: the TOML texts of tests, manual and plans, and each known word as a key of each table, with values that fields take.
import: the files of the importers' tests. frames, limits: each message of the protocol and each type within it, as its source and
docs/schema have them, and messages of the corpus with a value of each type in each field. All of them also with faults: each field missing, twice, and with a value of another type; each line of a text missing,
twice, and with another word. Other targets have none. Chance is the same in each run, so that a corpus comes again.
"""

import glob
import hashlib
import json
import pathlib
import random
import re
import struct
import sys
import tomllib

# Longest input, bytes, as in fuzz.sh.
LONGEST = 4096
# Inputs for each key.
TRIED = 16
# Random plans and specs of lines that others have.
MIXED = 8_000
# Places in a line that get other words.
PLACES = 4
# What stands for a text that is put in later.
MARK = "<mark>"
# Messages of each kind that are changed.
BASES = 8

VALUES = (
    '"" "auto" "1KiB" "64KiB" "10ms" "2s" "1Gbit/s" "5%" "1,2,4" "1..8" "1KiB..1MiB*2" "10.0.0.1" "imix" "7*64,1*1500" "on" "off" "tcp"'
    ' "udp" "bbr" "reverse" "both" "100/s" "round" "-" "max" "1000" 0 1 4 -1 0.5 1e9 true false [] ["a"] [1,2] ["1KiB","64KiB"]'
    ' ["on","off"] {a=1}'
).split()
# Values of which a field takes few.
WRONG = (None, True, 0, -1, 1.5, 10**19, "", "x", [], ["x"], [[]], [{}], {}, {"a": 1})
# Words in place of one in a line.
WORDS = ("", "x", "-", "-1", "0", "1.5e3", "99999999999999999999", "1:2", "a=1")
PATTERNS = ("rr", "stream", "curve", "crr", "transfer", "pingpong", "burst")
# Values that the parsers of a spec's keys take; others get all of the above.
PARSED = {
    "switch": ("true", "false"),
    "whole": ("1", "2", "64"),
    "ByteSize": ('"1KiB"', '"64KiB"'),
    "Nanos": ('"10ms"', '"2s"'),
    "BitRate": ('"100Mbit/s"', '"1Gbit/s"'),
    "address": ('"10.0.0.1"', '"fe80::1"'),
}
SPECS = ("stream", "rr", "transfer", "curve")
SPOKEN = ("iperf2", "iperf3", "netperf", "netpipe", "nttcp", "nuttcp", "stamp")
TABLES = ("base", "repeat", "lab", "traffic", "settings", "sets", "schedule", "require", "vars")


def sources(*patterns):
    """The texts of files."""
    return [pathlib.Path(name).read_text() for pattern in patterns for name in sorted(glob.glob(pattern, recursive=True))]


def literals(source):
    """The strings of a Rust source that may be TOML."""
    yield from re.findall(r'r#"(.*?)"#', source, re.S)
    for text in re.findall(r'"((?:[^"\\]|\\.)*=(?:[^"\\]|\\.)*)"', source, re.S):
        text = re.sub(r"\\\n\s*", "", text).replace("\\n", "\n").replace('\\"', '"')
        yield text
        # As `format!` writes braces.
        yield text.replace("{{", "{").replace("}}", "}")


def documents(rust, heads):
    """The TOML texts in sources of Rust, in the manual and in plans; also after each of `heads`."""
    texts = [text for source in sources(*rust) for text in literals(source)]
    texts += sources("plans/*.toml", "topologies/*.toml", "crates/lab/topologies/*.toml")
    for page in sources("docs/manual/*.md"):
        texts += [re.sub("^    ", "", block, flags=re.M) for block in re.findall(r"(?:^    .*\n|^\n)+", page, re.M)]
    for text in texts:
        for head in ("", *heads):
            try:
                if tomllib.loads(head + text):
                    yield head + text
            except tomllib.TOMLDecodeError:
                pass


def keys(words):
    """Each word as a key in a table of a plan."""
    for key in words:
        for _ in range(TRIED):
            value, other = random.choice(VALUES), random.choice(VALUES)
            base = f'[base]\npattern = "{random.choice(PATTERNS)}"\n'
            plan = f'to = ["b"]\n{base}'
            yield random.choice(
                (
                    f"{key} = {value}\n{plan}",
                    f"{plan}{key} = {value}\n",
                    f"{plan}{random.choice(('near', 'far'))}.{key} = {value}\n",
                    f'{plan}[[factor]]\nname = "{random.choice(("", "near.", "far."))}{key}"\nlevels = [{value}, {other}]\n',
                    f"{plan}[[cell]]\n{key} = {value}\n[[cell]]\n{key} = {other}\n",
                    f"{plan}[[group]]\n{key} = {value}\nflows = 2\n[[group]]\nname = \"g\"\n{key} = {other}\n",
                    f"{plan}[{random.choice(TABLES)}]\n{key} = {value}\n",
                )
            )


def assignments(texts):
    """For each key of a spec the lines that give it a value: those of TOML texts, and some of its type."""
    (fields,) = sources("crates/session/src/draft/fields.rs")
    parsers = {}
    found = {}
    for of, key, parser in re.findall(r'Field::(of|of_end)\(\s*"([a-z0-9-]+)",(.*?)(?=Field::|\];)', fields, re.S):
        parsers[key] = parser
        for value in next((values for name, values in PARSED.items() if name in parser), VALUES):
            for end in ("", "near.", "far.") if of == "of_end" else ("",):
                found[f"{end}{key} = {value}"] = end + key
    for line in (line.strip() for text in texts for line in text.split("\n")):
        key = re.match(r"((?:near\.|far\.)?([a-z0-9-]+)) = ", line)
        if key and key[2] in parsers:
            try:
                tomllib.loads(line)
                found[line] = key[1]
            except tomllib.TOMLDecodeError:
                pass
    by_key = {}
    for line, key in found.items():
        by_key.setdefault(key, []).append(line)
    return by_key


def mixed(known):
    """The lines of a random spec: a pattern, perhaps another program, and up to six of the known lines, each key once."""
    lines = {"pattern": f'pattern = "{random.choice(SPECS)}"'}
    if random.random() < 0.5:
        lines["speak"] = f'speak = "{random.choice(SPOKEN)}"'
    # Each key as often as others, however many values it has.
    for key in random.sample(sorted(known), random.randrange(5)):
        lines[key] = random.choice(known[key])
    return "\n".join(lines.values()) + "\n"


def words():
    """The names of fields in the sources of specs and plans, and their short strings."""
    found = set()
    for source in sources("crates/session/src/draft/**/*.rs", "crates/session/src/plan/**/*.rs"):
        found |= set(re.findall(r'"([a-z_.0-9-]{2,24})"', source)) | set(re.findall(r"^ *(?:pub )?([a-z_0-9]{2,24}):", source, re.M))
    return sorted(found)


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
        if isinstance(value, str) and value:
            text = compact(put(document, path, {**given, field: MARK}))
            yield from (text.replace(MARK, one) for one in (escaped(value), value[:-1] + "~", escaped(value[:-1] + "~")))
        yield from (compact(put(document, path, {**given, field: wrong})) for wrong in WRONG)


def escaped(text):
    """A text with an escape for its first letter. JSON is read in place without one, and copied with one."""
    return f"\\u{ord(text[0]):04x}{text[1:]}"


def compact(document):
    return json.dumps(document, separators=(",", ":"))


def plans():
    rust = ("crates/session/src/**/*.rs", "crates/schedule/src/**/*.rs", "tests/program/tests/*.rs")
    heads = ('to = ["b"]\n', 'from = ["a"]\nto = ["b"]\n[base]\n', 'to = ["b"]\n[[factor]]\n', 'to = ["b"]\n[[group]]\n')
    texts = list(documents(rust, heads))
    yield from with_edits(texts)
    yield from keys(words())
    known = assignments(texts)
    for _ in range(MIXED):
        yield f'to = ["b"]\n[base]\n{mixed(known)}'


def specs():
    texts = list(documents(("crates/session/src/**/*.rs", "tests/program/tests/*.rs"), ('pattern = "stream"\n', 'pattern = "rr"\n')))
    yield from with_edits(texts)
    known = assignments(texts)
    yield from (mixed(known) for _ in range(MIXED))
    for key in words():
        for _ in range(TRIED):
            yield f'pattern = "{random.choice(PATTERNS)}"\n{random.choice(("", "near.", "far."))}{key} = {random.choice(VALUES)}\n'


def topologies():
    yield from with_edits(documents(("crates/session/src/topology/**/*.rs", "crates/lab/src/**/*.rs", "tests/program/tests/*.rs"), ()))


def with_edits(texts):
    """Each text once, and edited in lines that those before lack."""
    seen = set()
    for text in dict.fromkeys(texts):
        yield text
        yield from edited(text, seen)


def imports():
    """The files as a whole, or their begin and their end, with faults: the format is detected."""
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
            texts = with_edits(texts)
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
    if "schema" in document:
        # A run of ours.
        schema = Schema()
        yield from schema.everywhere([(schema.run, {"schema": document["schema"]})])


def shortened(value, items):
    """A value with at most so many items in each list."""
    if isinstance(value, dict):
        return {key: shortened(inner, items) for key, inner in value.items()}
    return [shortened(inner, items) for inner in value[:items]] if isinstance(value, list) else value


# Sources of types that no document has, and of fields that documents do not show.
SOURCES = ("crates/model/src/**/*.rs", "crates/control/src/proto/message.rs")
# Those of which the first byte of `frames` chooses one.
READERS = ("ToAgent", "FromAgent", "ToWorker", "FromWorker")
# What a field of Rust is in JSON.
SCALARS = {
    "string": "String PathBuf IpAddr SocketAddr std::net::IpAddr",
    "integer": "u8 u16 u32 u64 usize i32 i64",
    "number": "f64",
    "boolean": "bool",
}


def rust_schema(text):
    """The schema of a type in Rust's words."""
    text = text.strip()
    for kind, names in SCALARS.items():
        if text in names.split():
            return {"type": kind}
    if within := re.fullmatch(r"(?:Option|Box)<(.*)>", text):
        return rust_schema(within[1])
    if within := re.fullmatch(r"Vec<(.*)>", text):
        return {"type": "array", "items": rust_schema(within[1])}
    if within := re.fullmatch(r"\[(.*); (\d+)\]", text):
        return {"type": "array", "items": rust_schema(within[1]), "minItems": int(within[2])}
    if within := re.fullmatch(r"BTreeMap<\w+, (.*)>", text):
        return {"type": "object", "additionalProperties": rust_schema(within[1])}
    return {"$ref": f"#/$defs/{text}"}


def rust_fields(body):
    """The schema of an object with the fields of a struct or of a variant."""
    found = re.findall(r"^\s*(?:pub )?([a-z_]+): (.*),$", body, re.M)
    fields = {name: rust_schema(text) for name, text in found}
    return {"type": "object", "properties": fields, "required": [name for name, text in found if not text.startswith("Option")]}


def rust_types(source):
    """The schemas of the structs of a source, and of its enums; one with content has its kinds, each with a schema."""
    source = re.sub(r"^\s*(//|#\[).*\n", "", source.split("#[cfg(test)]")[0], flags=re.M)
    types = {name: rust_fields(body) for name, body in re.findall(r"^pub struct (\w+) \{\n(.*?)^\}", source, re.M | re.S)}
    for name, body in re.findall(r"^pub enum (\w+) \{\n(.*?)^\}", source, re.M | re.S):
        variants = re.findall(r"^    ([A-Z]\w*)(?:\(([^\n]*)\)| \{\n(.*?)^    \})?,$", body, re.M | re.S)
        said = [re.sub(r"(?<!^)([A-Z])", r"-\1", variant).lower() for variant, _, _ in variants]
        if any(within or fields for _, within, fields in variants):
            kinds = [rust_schema(within) if within else rust_fields(fields) for _, within, fields in variants]
            types[name] = {"kinds": list(zip(said, kinds))}
        else:
            types[name] = {"enum": said}
    return types


class Schema:
    """What docs/schema says of the types of documents, and the sources of other types of messages."""

    def __init__(self):
        event, self.run = (json.loads(pathlib.Path(f"docs/schema/{name}.schema.json").read_text()) for name in ("event", "run"))
        self.types = {}
        for source in sources(*SOURCES):
            self.types |= rust_types(source)
        for name, schema in {**event.get("$defs", {}), **self.run["$defs"]}.items():
            hidden = self.types.get(name, {})
            if "properties" in schema and "properties" in hidden:
                schema = {**schema, "properties": {**hidden["properties"], **schema["properties"]}}
            self.types[name] = schema
        self.messages = {name: self.types.pop(name)["kinds"] for name in READERS}
        self.objects = []
        for schema in (*self.types.values(), self.run):
            self.collect(schema)
        self.words = {field for schema in self.objects for field in schema["properties"]}

    def collect(self, schema):
        if "properties" in schema:
            self.objects.append(schema)
        for kind in ("oneOf", "anyOf", "allOf"):
            for part in schema.get(kind, ()):
                self.collect(part)

    def values(self, schema, depth):
        """Values of a type, with others in them to that depth; the first one is the fullest."""
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self.types.get(schema["$ref"].split("/")[-1])
        if not isinstance(schema, dict) or not schema:
            return ["x"]
        for kind in ("oneOf", "anyOf"):
            if kind in schema:
                common = self.fields(schema, depth)[0] if "properties" in schema else None
                found = [value for part in schema[kind] for value in self.values(part, depth)[:6]]
                return [value if common is None else {**common, **value} for value in found if common is None or isinstance(value, dict)]
        if "allOf" in schema:
            return self.values(schema["allOf"][0], depth)
        if "const" in schema:
            return [schema["const"]]
        if "enum" in schema:
            return schema["enum"]
        kinds = schema.get("type", "object")
        found = []
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if kind == "object":
                found += self.fields(schema, depth)
            elif kind == "array" and "prefixItems" in schema:
                found.append([self.values(item, depth - 1)[0] for item in schema["prefixItems"]])
            elif kind == "array":
                items = self.values(schema.get("items"), depth - 1) if depth > 0 else []
                found += [[item] * schema.get("minItems", 1) for item in items[:6]] + [[]]
            else:
                found += {
                    "string": ["a", "h1:5201", "10.0.0.1", "2026-01-02T03:04:05Z", "5"],
                    "integer": [1, 0, 3, 1500],
                    "number": [0.5, 2],
                    "boolean": [True, False],
                }.get(kind, [])
        return found or [None]

    def fields(self, schema, depth):
        """An object with all its fields, and one with what must be there."""
        fields, required = schema.get("properties", {}), schema.get("required", ())
        if not fields and isinstance(schema.get("additionalProperties"), dict):
            return [{"a": value} for value in self.values(schema["additionalProperties"], depth - 1)[:5]] + [{}]
        least = {field: self.values(fields.get(field), depth - 1)[0] for field in required}
        full = {field: self.values(fields[field], depth - 2)[0] for field in fields} if depth > 0 else {}
        return [{**full, **least}, least] if depth > 0 else [least]

    def everywhere(self, roots):
        """JSON texts with an object of each type that is within one of the roots, as near to it as possible: whole, with the least, and
        spoiled. A root has its schema and what its object always has."""
        waiting, seen = [(schema, {}, (), say) for schema, say in roots], set()
        for schema, document, path, say in waiting:
            while isinstance(schema, dict) and "$ref" in schema:
                name = schema["$ref"].split("/")[-1]
                schema = None if name in seen and not say else self.types.get(name)
                seen.add(name)
            if not isinstance(schema, dict):
                continue
            common = {**(self.fields(schema, 0)[-1] if "properties" in schema else {}), **say}
            parts = schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf") or ()
            waiting += [(part, document, path, common) for part in parts]
            if "properties" in schema:
                for whole in self.fields(schema, 2):
                    given = put(document, path, {**whole, **common})
                    yield compact(given)
                    yield from spoiled(given, path)
                for field, inner in schema["properties"].items():
                    waiting.append((inner, put(document, path, {**common, field: None}), (*path, field), {}))
            elif isinstance(schema.get("additionalProperties"), dict):
                waiting.append((schema["additionalProperties"], put(document, path, {"a": None}), (*path, "a"), {}))
            elif isinstance(schema.get("items"), dict):
                waiting.append((schema["items"], put(document, path, [None]), (*path, 0), {}))
            elif not parts:
                yield from (compact(put(document, path, value)) for value in self.values(schema, 1))

    def fitting(self, message):
        """The objects in a message, each with its path and the types that it may be of."""
        for path, given in objects(message):
            known = set(given) - {"say"}
            fitting = [schema for schema in self.objects if known and known <= set(schema["properties"])]
            for schema in sorted(fitting, key=lambda schema: len(schema["properties"]))[:4]:
                yield path, given, schema

    def whole(self, message):
        """The message with each object in it replaced by one of its type, with the path of the object."""
        for path, given, schema in self.fitting(message):
            say = {"say": given["say"]} if "say" in given else {}
            yield from ((path, put(message, path, {**whole, **say})) for whole in self.fields(schema, 2))

    def changed(self, message):
        """The message with each field replaced or added."""
        for path, given, schema in self.fitting(message):
            for field, kind in schema["properties"].items():
                for depth in (1, 2):
                    yield from (put(message, path, {**given, field: value}) for value in self.values(kind, depth)[:40])

    def texts(self, messages):
        """Messages of one kind, fullest first, with all of these changes; faults in the types of the first one."""
        for first, message in zip((True, *[False] * len(messages)), messages):
            if first:
                for path, _ in objects(message):
                    yield from spoiled(message, path)
            yield from (compact(whole) for _, whole in self.whole(message))
            yield from map(compact, self.changed(message))


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
        found = sorted(found, key=lambda one: one[:3], reverse=True)[:BASES]
        # In one piece.
        head = found[0][3][:1] + b"\0" * (before - 1) if before else b""
        for text in schema.texts([message for _, _, _, _, message in found]):
            yield head + struct.pack(">I", len(text.encode())) + text.encode()


SEEDS = {
    "frames": lambda: messages("frames", 2),
    "import": imports,
    "limits": lambda: messages("limits", 0),
    "plan": plans,
    "spec": specs,
    "topology": topologies,
}


def main():
    target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    random.seed(target)
    for seed in SEEDS.get(target, lambda: ())():
        seed = seed.encode() if isinstance(seed, str) else seed
        if len(seed) <= LONGEST:
            (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


main()
