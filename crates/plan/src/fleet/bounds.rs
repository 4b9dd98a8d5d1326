//! How large a fleet and its names may be.

/// Most hosts that a text, and a fleet, may name.
pub(super) const MOST_HOSTS: usize = 65_536;
/// Most characters of a host's name: those of a name in DNS (RFC 1035, 2.3.4).
pub(super) const MOST_CHARACTERS: usize = 253;
/// Most brackets of a name.
pub(super) const MOST_BRACKETS: usize = 8;
/// Most of the texts of a fleet, MiB: a short pattern repeats what is long.
pub(super) const MOST_MIB: usize = 64;
