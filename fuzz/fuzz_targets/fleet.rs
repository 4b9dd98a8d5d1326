//! What names many hosts: a fleet.toml, inventories of Ansible, node lists of Slurm, pods of Kubernetes, an ssh configuration.
#![no_main]

use throughline_fuzz::memory::bounded;

// A pattern of a few characters names 65,536 hosts, whose texts take up to 64 MiB.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 512 << 20, 256, || fleet::fuzzing::fleet(bytes)));
