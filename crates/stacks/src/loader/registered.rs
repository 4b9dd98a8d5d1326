//! Compares the registration of a name with what this program would register.

use std::os::fd::AsFd;

use libbpf_rs::libbpf_sys::BPF_F_RDONLY_PROG;
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapInfo, MapType, Object};

use super::NON_RESTRICTED;

/// Result of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The same programs with the same constants.
    Same,
    /// Different ones.
    Another,
    /// Nothing: it has ended since, it is not a registration of a BPF link, or this process may not read it.
    Nothing,
}

/// Compares the registration of `name` with an object that was loaded but not registered, because that name was in
/// use. Needs CAP_SYS_ADMIN.
pub(super) fn compare(object: &Object, name: &str) -> Found {
    let ours = object.maps().find(|map| map.map_type() == MapType::StructOps).and_then(|map| contents(&map));
    let mut called = name.as_bytes().to_vec();
    called.resize(NAME_BYTES, 0);
    let Some((ours, at)) = ours.and_then(|ours| {
        let at = ours.windows(NAME_BYTES).position(|bytes| bytes == called)?;
        Some((ours, at))
    }) else {
        return Found::Nothing;
    };
    let theirs = LinkInfoIter::default()
        .filter_map(|link| match link.info {
            LinkTypeInfo::StructOps(info) => contents(&MapHandle::from_map_id(info.map_id).ok()?),
            _ => None,
        })
        .find(|theirs| theirs.get(at..at + NAME_BYTES) == Some(&called));
    match theirs {
        Some(theirs) if same(&ours, &theirs) => Found::Same,
        Some(_) => Found::Another,
        None => Found::Nothing,
    }
}

/// TCP_CA_NAME_MAX, include/net/tcp.h.
const NAME_BYTES: usize = 16;

/// A map of one entry: a registered structure, or constants.
fn contents(map: &impl MapCore) -> Option<Vec<u8>> {
    map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten()
}

/// Whether two structures register the same. The kernel shows a callback as the id of its program. The structure is
/// preceded by its reference count and state, in 8 bytes (struct bpf_struct_ops_common_value, include/linux/bpf.h).
fn same(ours: &[u8], theirs: &[u8]) -> bool {
    // One may be open to every user and the other to root only: that does not change their function. Key and flags
    // share a word.
    const FLAG: u64 = NON_RESTRICTED as u64 | (NON_RESTRICTED as u64) << 32;
    let programs: Vec<ProgramInfo> =
        ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true)).collect();
    let program = |word: u64| programs.iter().find(|program| u64::from(program.id) == word);
    let words = |bytes: &[u8]| -> Vec<u64> {
        let words = bytes.chunks_exact(8).skip(1).map(<[u8; 8]>::try_from);
        words.flatten().map(u64::from_ne_bytes).collect()
    };
    let agree = |(our, their): (u64, u64)| match program(our) {
        Some(our) => program(their).is_some_and(|their| same_program(our, their)),
        None => (our ^ their) & !FLAG == 0,
    };
    ours.len() == theirs.len() && words(ours).into_iter().zip(words(theirs)).all(agree)
}

/// A program's tag is the hash of its instructions, without the constants that it reads.
fn same_program(ours: &ProgramInfo, theirs: &ProgramInfo) -> bool {
    let mut maps = ours.map_ids.iter().zip(&theirs.map_ids);
    ours.tag.0 == theirs.tag.0
        && ours.map_ids.len() == theirs.map_ids.len()
        && maps.all(|(ours, theirs)| constants(*ours).is_some_and(|ours| Some(ours) == constants(*theirs)))
}

/// The constants of a program: parameters and rules, for example. Empty for the data that it may write itself.
fn constants(map_id: u32) -> Option<Vec<u8>> {
    let map = MapHandle::from_map_id(map_id).ok()?;
    let flags = MapInfo::new(map.as_fd()).ok()?.info.map_flags;
    if flags & BPF_F_RDONLY_PROG == 0 { Some(Vec::new()) } else { contents(&map) }
}
