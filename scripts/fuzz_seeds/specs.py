"""Plans, specs and topologies."""

import random
import re
import tomllib

from common import sources
from faults import with_edits

# Inputs for each key.
TRIED = 16
# Random plans and specs of lines that others have.
MIXED = 8_000
VALUES = (
    '"" "auto" "1KiB" "64KiB" "10ms" "2s" "1Gbit/s" "5%" "1,2,4" "1..8" "1KiB..1MiB*2" "10.0.0.1" "imix" "7*64,1*1500" "on" "off" "tcp"'
    ' "udp" "bbr" "reverse" "both" "100/s" "round" "-" "max" "1000" 0 1 4 -1 0.5 1e9 true false [] ["a"] [1,2] ["1KiB","64KiB"]'
    ' ["on","off"] {a=1}'
).split()
# Values that the parsers of a spec's keys take; others get all of the above.
PARSED = {
    "switch": ("true", "false"),
    "whole": ("1", "2", "64"),
    "ByteSize": ('"1KiB"', '"64KiB"'),
    "Nanos": ('"10ms"', '"2s"'),
    "BitRate": ('"100Mbit/s"', '"1Gbit/s"'),
    "address": ('"10.0.0.1"', '"fe80::1"'),
}
# Sizes of datagrams, whole and with mistakes.
MIXES = (
    "imix imix:64*7,594*4,1518 imix:64,64 imix:1518*1 imix:64*7, imix: imix:0*7 imix:64*0 imix:x*7 imix:64*x imix:64*999999999999"
    " imix:64KiB imix:99999999 imix:9 64*7,1518 7*64,1*1500 64,1518 64KiB*2"
).split()
PATTERNS = ("rr", "stream", "curve", "crr", "transfer", "pingpong", "burst")
SPECS = ("stream", "rr", "transfer", "curve")
SPOKEN = ("iperf2", "iperf3", "netperf", "netpipe", "nttcp", "nuttcp", "stamp")
# Tables of random plans, with those within them.
COMPOSED = ("cell", "factor", "group", "lab", "repeat", "require", "schedule", "settings", "traffic", "vars")
TABLES = ("base", "repeat", "lab", "traffic", "settings", "sets", "schedule", "require", "vars")


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


def words():
    """The names of fields in the sources of specs and plans, and their short strings."""
    found = set()
    for source in sources("crates/session/src/draft/**/*.rs", "crates/session/src/plan/**/*.rs"):
        found |= set(re.findall(r'"([a-z_.0-9-]{2,24})"', source)) | set(re.findall(r"^ *(?:pub )?([a-z_0-9]{2,24}):", source, re.M))
    return sorted(found)


def values(texts):
    """The lines of TOML texts that give a key a value, each with its table's head (`""` before the first one) and its key."""
    for text in texts:
        table = ""
        for line in (line.strip() for line in text.split("\n")):
            if re.fullmatch(r"\[[^\]]+\]|\[\[[^\]]+\]\]", line):
                table = line
            elif key := re.match(r"([\w.-]+) = ", line):
                try:
                    tomllib.loads(line)
                    yield table, key[1], line
                except tomllib.TOMLDecodeError:
                    pass


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
    for _, key, line in values(texts):
        if re.sub(r"^(near|far)\.", "", key) in parsers:
            found[line] = key
    by_key = {}
    for line, key in found.items():
        by_key.setdefault(key, []).append(line)
    return by_key


def mixed(known):
    """The lines of a random spec: a pattern, perhaps another program, and up to four known keys."""
    lines = {"pattern": f'pattern = "{random.choice(SPECS)}"'}
    if random.random() < 0.5:
        lines["speak"] = f'speak = "{random.choice(SPOKEN)}"'
    # Each key as often as others, however many values it has.
    for key in random.sample(sorted(known), random.randrange(5)):
        lines[key] = random.choice(known[key])
    return "\n".join(lines.values()) + "\n"


def by_table(texts):
    """For each table of TOML texts, with `""` for what is before the first one, for each key in it the lines that give it a value."""
    found = {}
    for table, key, line in values(texts):
        found.setdefault(table, {}).setdefault(key, []).append(line)
    return found


def composed(tables):
    """A random plan of lines that others have in the same table."""
    top = {key: lines for key, lines in tables[""].items() if key != "to"}
    text = f'{random.choice(tables[""]["to"])}\n{some_of(top, 0, 4)}\n[base]\n{some_of(tables["[base]"], 1, 4)}'
    others = sorted(table for table in tables if re.match(r"\[*([a-z]*)", table)[1] in COMPOSED)
    for table in random.sample(others, random.randrange(4)):
        for _ in range(random.randrange(1, 4) if table.startswith("[[") else 1):
            text += f"\n{table}\n" + some_of(tables[table], 1, 4)
    return text + "\n"


def some_of(lines, least, most):
    """Lines with a value for some keys."""
    keys = random.sample(sorted(lines), min(len(lines), random.randint(least, most)))
    return "\n".join(random.choice(lines[key]) for key in keys)


def mixes(known):
    """Specs whose datagrams have several sizes, each with a line of every key."""
    for key in sorted(known):
        for mix in random.sample(MIXES, 4):
            spec = {"pattern": 'pattern = "stream"', "transport": 'transport = "udp"', "block": f'block = "{mix}"'}
            spec[key] = random.choice(known[key])
            yield "\n".join(spec.values()) + "\n"


def plans():
    rust = ("crates/session/src/**/*.rs", "crates/schedule/src/**/*.rs", "tests/program/tests/*.rs")
    heads = ('to = ["b"]\n', 'from = ["a"]\nto = ["b"]\n[base]\n', 'to = ["b"]\n[[factor]]\n', 'to = ["b"]\n[[group]]\n')
    texts = list(documents(rust, heads))
    yield from with_edits(texts)
    yield from keys(words())
    known = assignments(texts)
    for _ in range(MIXED):
        yield f'to = ["b"]\n[base]\n{mixed(known)}'
    for spec in mixes(known):
        yield f'to = ["b"]\n[base]\n{spec}'
    tables = by_table(texts)
    for _ in range(MIXED):
        yield composed(tables)


def specs():
    texts = list(documents(("crates/session/src/**/*.rs", "tests/program/tests/*.rs"), ('pattern = "stream"\n', 'pattern = "rr"\n')))
    yield from with_edits(texts)
    known = assignments(texts)
    yield from (mixed(known) for _ in range(MIXED))
    yield from mixes(known)
    for key in words():
        for _ in range(TRIED):
            yield f'pattern = "{random.choice(PATTERNS)}"\n{random.choice(("", "near.", "far."))}{key} = {random.choice(VALUES)}\n'


def topologies():
    yield from with_edits(documents(("crates/session/src/topology/**/*.rs", "crates/lab/src/**/*.rs", "tests/program/tests/*.rs"), ()))
