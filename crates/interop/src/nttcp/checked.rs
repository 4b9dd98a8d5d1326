//! Data whose content is compared (-c): the engine's loops do not look at what they move, so that it goes its own, slower way.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use speak::nttcp::{Options, Pattern, Statistics};

/// Between two looks at whether to end.
const STEP: Duration = Duration::from_millis(50);
/// How long the data may rest.
const REST: Duration = Duration::from_secs(30);

/// Sends or receives the pattern over a connection; what was moved, and how many bytes were not the pattern's.
pub(super) fn run(socket: OwnedFd, asked: &Options, late: &dyn Fn() -> bool) -> io::Result<(Statistics, u64)> {
    let mut socket = TcpStream::from(socket);
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(STEP))?;
    socket.set_write_timeout(Some(STEP))?;
    let mut pattern = Pattern::new(&asked.seed);
    let mut buffer = vec![0; usize::try_from(asked.bytes).unwrap_or(usize::MAX)];
    let (mut bytes, mut calls, mut wrong) = (0, 0, 0);
    let (started, cpu) = (Instant::now(), cpu_s());
    if asked.transmits {
        for _ in 0..asked.count {
            pattern.fill(&mut buffer);
            let mut left = buffer.as_slice();
            while !left.is_empty() {
                let sent = patiently(late, || socket.write(left))?;
                left = &left[sent..];
                (bytes, calls) = (bytes + sent as u64, calls + 1);
            }
        }
        socket.shutdown(std::net::Shutdown::Write)?;
    } else {
        loop {
            let count = patiently(late, || socket.read(&mut buffer))?;
            calls += 1;
            if count == 0 {
                break;
            }
            wrong += pattern.mismatches(&buffer[..count]);
            bytes += count as u64;
        }
    }
    let (real_s, cpu_s) = (started.elapsed().as_secs_f64(), cpu_s() - cpu);
    let buffers = bytes / asked.bytes;
    Ok((Statistics { bytes, buffer_bytes: asked.bytes, buffers, calls, real_s, cpu_s }, wrong))
}

/// Repeats a call that brings nothing until it does, or it is late.
fn patiently(late: &dyn Fn() -> bool, mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    let rest = Instant::now() + REST;
    loop {
        match call() {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                if late() || Instant::now() > rest {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            moved => return moved,
        }
    }
}

/// CPU time of this process so far, seconds.
fn cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_pattern_arrives_and_a_wrong_byte_is_counted() {
        let options = Options { bytes: 1000, count: 300, compare: true, ..Options::default() };
        for seed in [options.seed.as_str(), "another"] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (inward, _) = listener.accept().unwrap();
            let asked = Options { seed: seed.into(), ..options.clone() };
            let sender = std::thread::spawn(move || run(out.into(), &asked, &|| false).unwrap());
            let expected = Options { transmits: false, ..options.clone() };
            let (counted, wrong) = run(inward.into(), &expected, &|| false).unwrap();
            assert_eq!((counted.bytes, counted.buffers), (300_000, 300));
            assert_eq!(sender.join().unwrap().0.bytes, 300_000);
            assert_eq!(wrong == 0, seed == options.seed, "{wrong}");
        }
    }

    #[test]
    fn silence_ends_when_it_is_late() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let asked = Options { transmits: false, ..Options::default() };
        assert_eq!(run(socket.into(), &asked, &|| true).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
