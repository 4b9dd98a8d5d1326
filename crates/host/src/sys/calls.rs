//! System calls that a process refuses itself for good (seccomp(2)).

use std::io;

use rustix::thread::set_no_new_privs;

/// What a helper never does: it loads no module, mounts nothing, traces no process, sets no clock and enters no other namespace. With
/// its few capabilities the kernel refuses most of these already; most errors of the kernel that gave a process more were in them.
const REFUSED: [libc::c_long; 48] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Offsets in struct seccomp_data of linux/seccomp.h: the number of the call, and its architecture.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// AUDIT_ARCH_* of linux/audit.h.
#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN_ARCHITECTURE: u32 = 0xc000_00b7;
/// The first number of the calls of x32, a second way to the same calls.
const X32: u32 = 0x4000_0000;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Refuses these calls with EPERM, and `bpf` unless the process `loads` programs of it; programs that it starts inherit that. Returns
/// whether the kernel does so.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn refuse(loads: bool) -> io::Result<bool> {
    set_no_new_privs(true)?;
    let mut filter = program(loads);
    let program =
        libc::sock_fprog { len: u16::try_from(filter.len()).map_err(io::Error::other)?, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives until the call returns.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    // A kernel without filters.
    if error.raw_os_error() == Some(libc::EINVAL) { Ok(false) } else { Err(error) }
}

fn program(loads: bool) -> Vec<libc::sock_filter> {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let refused = step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    // Calls of another architecture have other numbers.
    let mut program = vec![step(LOAD, 0, 0, ARCHITECTURE), step(IF_EQUAL, 1, 0, OWN_ARCHITECTURE), refused];
    program.extend([step(LOAD, 0, 0, NUMBER), step(IF_AT_LEAST, 0, 1, X32), refused]);
    let bpf = (!loads).then_some(libc::SYS_bpf);
    for call in REFUSED.into_iter().chain(bpf) {
        program.extend([step(IF_EQUAL, 0, 1, call as u32), refused]);
    }
    program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel does with a call.
    fn run(program: &[libc::sock_filter], architecture: u32, call: u32) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            match code {
                LOAD => loaded = if k == NUMBER { call } else { architecture },
                RETURN => return k,
                _ => {
                    let is = if code == IF_EQUAL { loaded == k } else { loaded >= k };
                    at += usize::from(if is { jt } else { jf });
                }
            }
        }
    }

    #[test]
    fn the_listed_calls_are_refused_and_no_others() {
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        for loads in [false, true] {
            let program = program(loads);
            for call in 0..1_000 {
                let listed = REFUSED.contains(&libc::c_long::from(call)) || (!loads && call == libc::SYS_bpf as i32);
                let wanted = if listed { refused } else { libc::SECCOMP_RET_ALLOW };
                assert_eq!(run(&program, OWN_ARCHITECTURE, call as u32), wanted, "{call}");
            }
            assert_eq!(run(&program, 3, libc::SYS_read as u32), refused, "another architecture");
            assert_eq!(run(&program, OWN_ARCHITECTURE, X32), refused);
        }
    }
}
