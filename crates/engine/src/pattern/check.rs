//! Whether this build can run a spec.

use model::{Direction, Engine, Framing, Io, Pattern, ReceiveBy, SendBy, Spec, Strategy};
use text::{Said, Text, say};

use super::refusals::refuse_direction;
use super::strategy::strategy;
use super::{crr, pingpong, stream, transfer};
use crate::core::EngineError;
use crate::transport::{Capabilities, Transport, names, transport};

/// Refuses a spec that this build's registries cannot run.
pub fn check(spec: &Spec) -> Result<(), EngineError> {
    spec.check().map_err(|error| EngineError::unsupported("these settings", error.say()))?;
    if let Some(program) = &spec.speak {
        let remedy = say!(
            "only `thru stream`, `rr`, `transfer` and `curve` measure other programs; leave out `--speak`, and run `thru serve` on HOST"
        );
        return Err(EngineError::unsupported(say!("`--speak {program}` here"), remedy));
    }
    let transport = transport(spec.transport.as_str())?;
    if spec.transport_facts() != Some(*transport.facts()) {
        return Err(EngineError::unsupported(
            say!("transport {} as the spec describes it", transport.name()),
            "use the same version of the program at both ends",
        ));
    }
    let capabilities = transport.capabilities();
    if spec.block.max(spec.reply_bytes()) > capabilities.max_block {
        return Err(EngineError::unsupported(
            say!("a block of {} bytes on {}", spec.block.max(spec.reply_bytes()), spec.transport),
            say!("its largest message is {} bytes", capabilities.max_block),
        ));
    }
    transport.check(spec)?;
    match spec.pattern {
        Pattern::Pingpong => pingpong::check(spec, &capabilities)?,
        Pattern::Stream => stream::check(spec, &capabilities)?,
        Pattern::Rr => refuse_direction(spec, &capabilities)?,
        Pattern::Crr => crr::check(spec, &capabilities)?,
        Pattern::Transfer => transfer::check(spec, &capabilities)?,
    }
    check_engine(spec, transport)?;
    check_mix(spec)?;
    if spec.responsiveness && !capabilities.reconnects {
        let able = names(|other| other.capabilities().reconnects);
        return Err(EngineError::unsupported(
            say!("`--responsiveness` on {}", spec.transport),
            say!("its probes open connections under TCP load; use {able}"),
        ));
    }
    let drains = [&spec.near, &spec.far].iter().any(|end| end.drain_bps.is_some());
    if drains && (!spec.is_stream() || capabilities.datagram || capabilities.single_ended) {
        return Err(EngineError::unsupported(
            say!("`--drain` for {} on {}", spec.pattern, spec.transport),
            say!(
                "it slows the receiver, so the sender must be able to wait; use it for streams over {}",
                names(|other| other.capabilities().is_stream_between_two())
            ),
        ));
    }
    if spec.paced_to_receiver && !(transport.overruns() && spec.is_stream()) {
        return Err(EngineError::unsupported(
            say!("pacing to the receiver for {} on {}", spec.pattern, spec.transport),
            say!("it works only for streams and transfers over {}; use `--unpaced`", names(|other| other.overruns())),
        ));
    }
    if spec.overlap_close && spec.pattern != Pattern::Crr {
        let remedy =
            say!("it works only with `thru rr --connect`, which opens a connection per transaction; leave it out");
        return Err(EngineError::unsupported(say!("`--overlap-close` with {}", spec.pattern), remedy));
    }
    let directions = if spec.is_stream() && spec.direction == Direction::Both { 2 } else { 1 };
    let strategy = strategy(spec, transport, spec.flows as usize * directions)?;
    if spec.anatomy {
        check_anatomy(spec, &capabilities, strategy)?;
    }
    if spec.delayed_reads { check_delayed_reads(spec, &capabilities, strategy) } else { Ok(()) }
}

/// Refuses a mix of sizes where a block is not a packet, and where a call sends several datagrams of one size.
fn check_mix(spec: &Spec) -> Result<(), EngineError> {
    if spec.mix.is_empty() {
        return Ok(());
    }
    let what = |beside: Text| say!("`--block {}` {beside}", spec.block_words());
    if !spec.is_stream() {
        let remedy = "only streams and transfers can mix sizes; use one size";
        return Err(EngineError::unsupported(what(say!("with {}", spec.pattern)), remedy));
    }
    if spec.transport_facts().and_then(|facts| facts.framing) != Some(Framing::Udp) {
        let able = names(|other| other.facts().framing == Some(Framing::Udp));
        let remedy = format!("a block is one packet only over {able}; use that, or one size");
        return Err(EngineError::unsupported(what(say!("on {}", spec.transport)), remedy));
    }
    if spec.engine.auto || spec.engine.send != SendBy::Copy {
        let remedy = say!("each of its calls sends datagrams of one size; leave `--engine` out");
        return Err(EngineError::unsupported(what(say!("with `--engine {}`", spec.engine)), remedy));
    }
    Ok(())
}

/// Refuses the anatomy of round trips other than those of one connection, one at a time, by plain calls that the kernel stamps.
fn check_anatomy(spec: &Spec, capabilities: &Capabilities, strategy: Strategy) -> Result<(), EngineError> {
    let others = [
        (spec.pattern != Pattern::Rr, say!("with {}", spec.pattern)),
        (!capabilities.stamps, say!("on {}", spec.transport)),
        (spec.flows > 1 || spec.processes > 1, say!("with `--flows {}`", spec.flows)),
        (spec.direction != Direction::Send, say!("with `--reverse`")),
        (spec.outstanding.is_some(), "with several requests at a time".into()),
        (strategy == Strategy::Epoll, say!("with `--wait epoll`")),
        (strategy == Strategy::Uring, say!("with `--wait uring`")),
        (spec.io != Io::SendRecv, say!("with `--io read-write`")),
    ];
    let Some((_, beside)) = others.into_iter().find(|(other, _)| *other) else { return Ok(()) };
    let able = names(|other| other.capabilities().stamps);
    Err(EngineError::unsupported(
        say!("`--anatomy` {beside}"),
        say!("it works only for `thru rr` over {able}, with one flow from this end that blocks or spins; leave it out"),
    ))
}

/// Refuses delayed reads where no receiver would use them or where they would distort the measurement: at a given rate
/// they gain nothing, and datagrams could be lost.
fn check_delayed_reads(spec: &Spec, capabilities: &Capabilities, strategy: Strategy) -> Result<(), EngineError> {
    fn refuse(beside: impl Into<Text>, remedy: impl Into<Text>) -> Result<(), EngineError> {
        Err(EngineError::unsupported(say!("`--delayed-reads` {}", beside.into()), remedy))
    }
    if !spec.is_stream() {
        return refuse(say!("with {}", spec.pattern), "it works only for streams and transfers; leave it out");
    }
    if !capabilities.delays_reads {
        let works = names(|other| other.capabilities().delays_reads);
        return refuse(say!("on {}", spec.transport), say!("it works with {works}"));
    }
    if capabilities.datagram && spec.engine.receive == ReceiveBy::Copy {
        return refuse(
            say!("on {}", spec.transport),
            say!("it needs many datagrams per call; add `--engine mmsg` or gso"),
        );
    }
    let at_a_rate = [spec.rate_bps, spec.near.drain_bps, spec.far.drain_bps].iter().any(Option::is_some);
    if at_a_rate || spec.no_loss {
        return refuse("at a rate", say!("leave out `--rate`, `--drain` and `--find-no-loss`, or `--delayed-reads`"));
    }
    if strategy != Strategy::Blocking {
        return refuse("without blocking reads", say!("leave out `--spin` and `--wait`, and give each flow a thread"));
    }
    Ok(())
}

/// Refuses send and receive methods that the transport or the pattern does not have.
fn check_engine(spec: &Spec, transport: &dyn Transport) -> Result<(), EngineError> {
    let known = |names: Vec<&str>| format!("it has {}", names.join(", "));
    if !spec.engine.is_plain() && !spec.is_stream() {
        return Err(EngineError::unsupported(
            say!("`--engine` with {}", spec.pattern),
            "it works only for streams and transfers; leave it out",
        ));
    }
    if !transport.sends().contains(&spec.engine.send) {
        let names =
            Engine::SENDS.iter().filter(|(_, method)| transport.sends().contains(method)).map(|(name, _)| *name);
        return Err(EngineError::unsupported(
            say!("`--engine {}` on {}", spec.engine, spec.transport),
            known(names.collect()),
        ));
    }
    if !transport.receives().contains(&spec.engine.receive) {
        let names =
            Engine::RECEIVES.iter().filter(|(_, method)| transport.receives().contains(method)).map(|(name, _)| *name);
        return Err(EngineError::unsupported(
            say!("`--engine {}` to receive on {}", spec.engine, spec.transport),
            known(names.collect()),
        ));
    }
    Ok(())
}
