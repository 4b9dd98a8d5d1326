//! What a driver says of itself: the one answer of ethtool that has no netlink message (ETHTOOL_GDRVINFO, linux/ethtool.h).

use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::DriverInfo;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 3;

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct Info {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    erom_version: [u8; 32],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// Asks the driver of `interface`.
pub(super) fn info(interface: &str) -> io::Result<DriverInfo> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut info = Info {
        command: ETHTOOL_GDRVINFO,
        driver: [0; 32],
        version: [0; 32],
        firmware: [0; 32],
        bus: [0; 32],
        erom_version: [0; 32],
        reserved: [0; 12],
        counts: [0; 5],
    };
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: the request names a terminated interface and points to an ethtool_drvinfo that outlives the call; with this
    // command the kernel writes no more than that struct.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(DriverInfo {
        driver: text(&info.driver),
        version: text(&info.version),
        firmware: text(&info.firmware),
        bus: text(&info.bus),
    })
}

/// The text in a fixed field; `None` for an empty one and for `N/A`.
fn text(field: &[u8]) -> Option<String> {
    let text = CStr::from_bytes_until_nul(field).ok()?.to_string_lossy().trim().to_owned();
    (!text.is_empty() && text != "N/A").then_some(text)
}
