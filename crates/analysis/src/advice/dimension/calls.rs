//! The calls that send and receive blocks, and the block size.

use model::{Engine, LimiterKind, ReceiveBy, SendBy};

use super::{BULK, Dimension, Edit, Level, SearchContext, Untried, size};

/// The calls that send and receive the blocks.
pub(super) const ENGINE: Dimension = Dimension {
    name: "engine",
    class: None,
    goals: BULK,
    eases: &[LimiterKind::SenderCpu, LimiterKind::ReceiverCpu, LimiterKind::SenderApplication],
    levels: engines,
};

/// Bytes per send.
pub(super) const BLOCK: Dimension = Dimension {
    name: "block",
    class: None,
    goals: BULK,
    eases: &[LimiterKind::SenderCpu, LimiterKind::SenderApplication, LimiterKind::ReceiverApplication],
    levels: blocks,
};

/// Blocks that are tried, bytes.
const BLOCKS: [u64; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];

fn engines(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let now = path.spec.engine;
    let mut engines: Vec<Engine> = path.sends.iter().map(|send| Engine::sending(*send)).collect();
    if path.receives.contains(&ReceiveBy::Map) {
        // Only pages without other users can be mapped, and this send method leaves such pages.
        engines.push(Engine { send: SendBy::Zerocopy, receive: ReceiveBy::Map, auto: false });
    }
    let same = |engine: &Engine| (engine.send, engine.receive) == (now.send, now.receive);
    let others = engines.into_iter().filter(|engine| !same(engine));
    let levels: Vec<Level> = std::iter::once(Level::start(now.to_string()))
        .chain(others.map(|engine| Level::new(engine.to_string(), vec![Edit::Engine(engine)])))
        .collect();
    if levels.len() < 2 { Err(Untried::OneSendMethod { transport: path.spec.transport.clone() }) } else { Ok(levels) }
}

fn blocks(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    if path.fixed_block {
        return Err(Untried::BlockGiven);
    }
    if !path.spec.is_over_tcp() {
        return Err(Untried::DatagramSize);
    }
    let now = path.spec.block;
    let others = BLOCKS.into_iter().filter(|block| *block != now);
    Ok(std::iter::once(Level::start(size(now)))
        .chain(others.map(|block| Level::new(size(block), vec![Edit::Block(block)])))
        .collect())
}
