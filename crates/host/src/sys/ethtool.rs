//! What only ethtool's ioctl provides (linux/ethtool.h): a driver's identity, and its statistics under its own names;
//! ethtool's netlink has standard groups only.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::DriverInfo;
use super::guarded::Guarded;

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 3;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
/// Bytes of `struct ethtool_drvinfo`: cmd; driver, version, firmware, bus and extension ROM, 32 bytes each; 12
/// reserved; five counts.
const DRIVER_INFO: usize = 4 + 5 * NAME + 12 + 5 * 4;
/// Bytes of a name.
const NAME: usize = 32;

/// Information on the driver of an interface.
pub(super) fn driver(interface: &str) -> io::Result<DriverInfo> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let info = call(&socket, interface, DRIVER_INFO, &[joined(ETHTOOL_GDRVINFO, 0)])?;
    Ok(driver_info(info.words()))
}

/// The fields of the structure. One that the driver leaves empty, or sets to `N/A`, is null.
fn driver_info(info: &[u64]) -> DriverInfo {
    let bytes: Vec<u8> = info.iter().flat_map(|word| word.to_ne_bytes()).skip(4).collect();
    let reported = |text: String| (!text.is_empty() && text != "N/A").then_some(text);
    let mut names = bytes.chunks_exact(NAME).map(|bytes| reported(name(bytes)));
    let mut next = || names.next().flatten();
    DriverInfo { driver: next(), version: next(), firmware: next(), bus: next() }
}

/// Names and values; empty for a driver without statistics.
pub(super) fn statistics(interface: &str) -> io::Result<Vec<(String, u64)>> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // struct ethtool_sset_info: cmd, reserved; mask; the number of each set that the mask names.
    let info = match call(&socket, interface, 20, &[joined(ETHTOOL_GSSET_INFO, 0), 1 << ETH_SS_STATS]) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(Vec::new()),
        answer => answer?,
    };
    let info = info.words();
    let count = if info[1] == 0 { 0 } else { words(info[2])[0] };
    if count == 0 {
        return Ok(Vec::new());
    }
    // struct ethtool_gstrings: cmd, set; number; names of 32 bytes, which here begin in the middle of a word.
    let set = [joined(ETHTOOL_GSTRINGS, ETH_SS_STATS), joined(count, 0)];
    let names = call(&socket, interface, 12 + count as usize * NAME, &set).map_err(outgrown)?;
    let names = names.words();
    // struct ethtool_stats: cmd, number; values.
    let values =
        call(&socket, interface, 8 + count as usize * 8, &[joined(ETHTOOL_GSTATS, count)]).map_err(outgrown)?;
    let values = values.words();
    let (named, valued) = (words(names[1])[0] as usize, words(values[0])[1] as usize);
    if named != valued {
        return Err(changed());
    }
    let bytes: Vec<u8> = names.iter().flat_map(|word| word.to_ne_bytes()).skip(12).collect();
    Ok(bytes.chunks_exact(NAME).map(name).zip(values[1..].iter().copied()).take(valued).collect())
}

/// The kernel writes as many statistics as exist at that time: EFAULT if these are more than were counted before.
fn outgrown(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::EFAULT) { changed() } else { error }
}

fn changed() -> io::Error {
    io::Error::other("the driver changed its statistics during the read")
}

/// The text in a field.
fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).trim().to_owned()
}

/// Two 32-bit fields as one word of memory.
fn joined(first: u32, second: u32) -> u64 {
    let [first, second] = [first, second].map(u32::to_ne_bytes);
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first);
    bytes[4..].copy_from_slice(&second);
    u64::from_ne_bytes(bytes)
}

/// The two 32-bit fields of a word.
fn words(word: u64) -> [u32; 2] {
    let bytes = word.to_ne_bytes();
    let (fields, _) = bytes.as_chunks::<4>();
    [fields[0], fields[1]].map(u32::from_ne_bytes)
}

/// Sends a command to the driver: `command` and zeros, `bytes` in all, which the answer replaces. EFAULT if that is longer.
/// 64-bit words keep every field aligned.
fn call(socket: &impl AsRawFd, interface: &str, bytes: usize, command: &[u64]) -> io::Result<Guarded> {
    // SAFETY: all bytes zero is a valid ifreq: a name of no letters and a null pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the interface's name is too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    let mut data = Guarded::new(bytes.div_ceil(8))?;
    data.words_mut()[..command.len()].copy_from_slice(command);
    request.ifr_ifru.ifru_data = data.words_mut().as_mut_ptr().cast();
    // SAFETY: the name ends with a zero; the data are alive for the call, begin with the command that identifies their
    // structure, and end at a page without access, where the kernel stops.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if result == 0 { Ok(data) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_as_the_kernel_has_them() {
        assert_eq!(words(joined(0x1b, 7)), [0x1b, 7]);
        assert_eq!(joined(ETHTOOL_GSTATS, 5).to_ne_bytes()[..4], ETHTOOL_GSTATS.to_ne_bytes());
    }

    #[test]
    fn driver_information_is_read_field_by_field() {
        assert_eq!(DRIVER_INFO, 196, "as linux/ethtool.h has it");
        let mut bytes = vec![0; DRIVER_INFO.next_multiple_of(8)];
        for (field, text) in ["virtio_net", "1.0.0", "N/A", "", "erom"].into_iter().enumerate() {
            let at = 4 + field * NAME;
            bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        let (all, _) = bytes.as_chunks::<8>();
        let info: Vec<u64> = all.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let expected =
            DriverInfo { driver: Some("virtio_net".into()), version: Some("1.0.0".into()), ..DriverInfo::default() };
        assert_eq!(driver_info(&info), expected);
        assert!(driver("no-such-if").is_err());
    }

    #[test]
    fn more_statistics_than_were_counted_are_an_error_that_says_so() {
        assert!(outgrown(io::Error::from_raw_os_error(libc::EFAULT)).to_string().contains("changed its statistics"));
        assert_eq!(outgrown(io::Error::from_raw_os_error(libc::EPERM)).raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn an_answer_longer_than_its_room_is_refused() {
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap();
        let command = [joined(ETHTOOL_GDRVINFO, 0)];
        // Loopback has no driver to describe on some kernels.
        if call(&socket, "lo", DRIVER_INFO, &command).is_ok() {
            let error = call(&socket, "lo", DRIVER_INFO / 2, &command).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        }
    }

    #[test]
    fn loopback_counts_nothing_and_no_interface_is_an_error() {
        assert_eq!(statistics("lo").unwrap(), []);
        assert!(statistics("no-such-if").is_err());
        assert!(statistics("a-name-that-is-too-long").unwrap_err().to_string().contains("too long"));
    }
}
