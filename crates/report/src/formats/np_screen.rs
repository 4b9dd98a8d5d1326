//! The screen output of NPtcp 3.7.2's transmitter.
//!
//! Each point is `%3d: %7d bytes %6d times --> ` followed by ` %8.2lf Mbps in %10.2lf usec`. The count is the blocks of
//! a trial, averaged over the trials. Source: NetPIPE 3.7.2, `src/netpipe.c` and `src/tcp.c`.

use model::{Outcome, SocketFacts};

use super::np::{each_line, only_curves};
use crate::{Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    only_curves(view, "np-screen")?;
    each_line(view, "screen", |outcomes, points| {
        let mut text = buffers(outcomes);
        text.push_str("Now starting the main loop\n");
        for (index, point) in points.iter().enumerate() {
            text.push_str(&screen_line(index, point.bytes, point.repeats, point.mbps, point.seconds * 1e6));
        }
        text
    })
}

/// The socket buffers of the first flow at the near end; empty if the transport has none.
fn buffers(outcomes: &[&Outcome]) -> String {
    let flows = outcomes.iter().flat_map(|outcome| &outcome.trials).flat_map(|trial| &trial.near.flows);
    let sizes = |socket: &SocketFacts| Some((socket.sndbuf?, socket.rcvbuf?));
    flows.map(|flow| &flow.socket).find_map(sizes).map_or(String::new(), |(send, receive)| {
        format!(
            "Send and receive buffers are {send} and {receive} bytes\n(A bug in Linux doubles the requested buffer sizes)\n"
        )
    })
}

fn screen_line(index: usize, bytes: u64, repeats: u64, mbps: f64, usec: f64) -> String {
    format!("{index:3}: {bytes:7} bytes {repeats:6} times -->  {mbps:8.2} Mbps in {usec:10.2} usec\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    const RECORDED: &str = include_str!("../../testdata/netpipe372_screen.txt");

    #[test]
    fn recorded_lines_are_reproduced_byte_for_byte() {
        let points: Vec<&str> = RECORDED.lines().filter(|line| line.contains(" times -->")).collect();
        assert_eq!(points.len(), 124);
        for line in points {
            let fields: Vec<f64> = line
                .split(|c: char| !(c.is_ascii_digit() || c == '.'))
                .filter_map(|field| field.parse().ok())
                .collect();
            let [index, bytes, repeats, mbps, usec] = fields[..] else { panic!("{line}") };
            let written = screen_line(index as usize, bytes as u64, repeats as u64, mbps, usec);
            assert_eq!(written, format!("{line}\n"));
        }
    }

    #[test]
    fn a_curve_shows_its_buffers_and_all_points() {
        let pieces = render(&View::new(&[sample::curve()])).unwrap();
        let text = std::str::from_utf8(&pieces[0].bytes).unwrap();
        assert!(text.starts_with("Send and receive buffers are 16384 and 131072 bytes\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains(" usec")).count(), 124);
    }
}
