//! Whether this host can do what a spec requests of an end.

use std::os::fd::AsFd;

use model::{Pattern, Role, Spec, Strategy};
use rustix::thread::CpuSet;
use text::say;

use super::registry::transport;
use super::sys::uring;
use super::{options, tcp};
use crate::core::EngineError;

/// Whether this host supports the spec's options at the end of `role`: tried on an unconnected socket, so that a wrong
/// name is refused before the measurement.
pub fn check_end(role: Role, spec: &Spec) -> Result<(), EngineError> {
    let end = spec.end(role);
    check_cores(&end.pin)?;
    check_files(spec)?;
    let transport = transport(spec.transport.as_str())?;
    transport.check_host()?;
    transport.check_engine(spec, role)?;
    if spec.strategy == Strategy::Uring {
        uring::check()?;
    }
    let facts = transport.facts();
    if facts.ip.is_none() {
        return Ok(());
    }
    let tcp = facts.is_over_tcp();
    let trial = if tcp {
        tcp::open(spec, (std::net::Ipv4Addr::LOCALHOST, 0).into())
    } else {
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)
    };
    let trial = trial.map_err(|source| EngineError::socket("open a socket for", &spec.transport, source))?;
    options::before_handshake(trial.as_fd(), end, tcp)?;
    options::connected(trial.as_fd(), end, spec, tcp)
}

/// Descriptors that a measuring process needs besides its flows' own.
const BESIDES: u64 = 64;

/// Whether a measuring process may open all its connections: it inherits this one's limit.
fn check_files(spec: &Spec) -> Result<(), EngineError> {
    if !transport(spec.transport.as_str())?.capabilities().pollable {
        return Ok(());
    }
    let both = spec.is_stream() && spec.direction == model::Direction::Both;
    let each = match spec.pattern {
        // A flow keeps its first connection and, for a moment, that of the previous transaction.
        Pattern::Crr => 3,
        _ if both => 2,
        _ => 1,
    };
    let flows = u64::from(spec.flows).div_ceil(u64::from(spec.processes.max(1)));
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit.filter(|limit| flows * each + BESIDES > *limit) {
        None => Ok(()),
        Some(limit) => Err(EngineError::unsupported(
            say!("{flows} flows in a process that may open {limit} files"),
            say!(
                "raise the limit of open files (ulimit -Hn, or LimitNOFILE= of a service), use `--processes`, or use \
                fewer `--flows`"
            ),
        )),
    }
}

/// Whether measuring threads may run on these cores.
fn check_cores(cores: &[u32]) -> Result<(), EngineError> {
    let allowed = rustix::thread::sched_getaffinity(None).map_err(|error| EngineError::Thread(error.to_string()))?;
    let runs = |core: u32| (core as usize) < CpuSet::MAX_CPU && allowed.is_set(core as usize);
    match cores.iter().find(|core| !runs(**core)) {
        None => Ok(()),
        Some(core) => {
            let given: Vec<String> =
                (0..CpuSet::MAX_CPU as u32).filter(|core| runs(*core)).map(|core| core.to_string()).collect();
            Err(EngineError::unsupported(
                say!("`--pin` to core {core}"),
                say!("this process may use the cores {}", given.join(", ")),
            ))
        }
    }
}
