"""The types of documents and messages, and JSON texts with an object of each."""

import json
import pathlib
import re

from common import compact, objects, put, sources
from faults import misspelt, spoiled

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
                yield from (compact(put(document, path, last)) for last in self.late(schema, common))
                for field, inner in schema["properties"].items():
                    waiting.append((inner, put(document, path, {**common, field: None}), (*path, field), {}))
            elif isinstance(schema.get("additionalProperties"), dict):
                waiting.append((schema["additionalProperties"], put(document, path, {"a": None}), (*path, "a"), {}))
            elif isinstance(schema.get("items"), dict):
                waiting.append((schema["items"], put(document, path, [None]), (*path, 0), {}))
            elif not parts:
                for value in self.values(schema, 1):
                    yield compact(put(document, path, value))
                    if {"enum", "const"} & set(schema):
                        yield from misspelt(document, path, value)

    def late(self, schema, common):
        """Objects of a type whose last field has a value of another type, so that what was read before it is dropped: each field once, after
        all others as they are, without their content, and null where they may be."""
        fields, (whole, least) = schema["properties"], self.fields(schema, 2)
        whole = {**whole, **common}
        empty = {field: self.empty(fields.get(field), value) for field, value in whole.items() if field not in common}
        nothing = {field: None for field in whole if field not in least and field not in common}
        for state in (whole, {**whole, **empty}, {**whole, **nothing}):
            yield state
            for field in fields.keys() & state.keys() - common.keys():
                rest = {other: value for other, value in state.items() if other != field}
                yield {**rest, field: "x" if isinstance(whole[field], (int, float)) else 1}

    def empty(self, schema, value):
        """A list or a text without content in place of one that has some; another value as it is."""
        if isinstance(value, list):
            return value if isinstance(schema, dict) and "minItems" in schema else []
        kinds = schema.get("type", ()) if isinstance(schema, dict) and not {"enum", "const"} & set(schema) else ()
        return "" if isinstance(value, str) and "string" in kinds else value

    def fitting(self, message):
        """The objects in a message, each with its path and the types that it may be of."""
        for path, given in objects(message):
            known = set(given) - {"say"}
            fitting = [schema for schema in self.objects if known and known <= set(schema["properties"])]
            for schema in sorted(fitting, key=lambda schema: len(schema["properties"]))[:4]:
                yield path, given, schema

    def whole(self, message):
        """The message with each object in it replaced by one of its type."""
        for path, given, schema in self.fitting(message):
            say = {"say": given["say"]} if "say" in given else {}
            yield from (put(message, path, {**whole, **say}) for whole in self.fields(schema, 2))

    def changed(self, message):
        """The message with each field replaced or added."""
        for path, given, schema in self.fitting(message):
            for field, kind in schema["properties"].items():
                for depth in (1, 2):
                    yield from (put(message, path, {**given, field: value}) for value in self.values(kind, depth)[:40])

    def texts(self, message):
        """A message with all of these changes, and with faults."""
        for path, _ in objects(message):
            yield from spoiled(message, path)
        yield from map(compact, self.whole(message))
        yield from map(compact, self.changed(message))
