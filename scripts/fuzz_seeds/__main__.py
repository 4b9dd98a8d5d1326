"""Inputs from which a coverage-guided test begins, beside its corpus: `fuzz_seeds TARGET FOLDER` writes each into a file of FOLDER.

plan, spec, topology: the TOML texts of tests, manual and plans, each known word as a key of each table, random lines that keys take, and
random plans of such lines. import: the files of the importers' tests and the texts in their sources, in each format, and runs of ours.
inventory: the files of recorded hosts. frames, limits: each message of the protocol and each type within it, as its source and docs/schema
have them, and messages of the corpus with a value of each type in each field. All of them also with faults: each field missing, twice,
nearly with its name, with escapes, and with a value of another type; each line of a text missing, twice, and with another word. Other
targets have none. Chance is the same in each run, so that a corpus comes again.
"""

import hashlib
import pathlib
import random
import sys

from common import LONGEST
from hosts import hosts
from messages import messages
from results import imports
from specs import plans, specs, topologies

SEEDS = {
    "frames": lambda: messages("frames", 2),
    "import": imports,
    "inventory": hosts,
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
