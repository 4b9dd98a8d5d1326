//! What several patterns refuse.

use model::{Direction, Spec};
use text::{Text, say};

use crate::core::EngineError;
use crate::transport::{Capabilities, names};

pub(crate) fn needs_streams(spec: &Spec, capabilities: &Capabilities, what: &Text) -> Result<(), EngineError> {
    if capabilities.datagram {
        return Err(EngineError::unsupported(
            say!("{what} on {}", spec.transport),
            say!("use {}", names(|other| other.capabilities().is_stream_between_two())),
        ));
    }
    Ok(())
}

/// A transport with one end has no direction to reverse.
pub(crate) fn refuse_direction(spec: &Spec, capabilities: &Capabilities) -> Result<(), EngineError> {
    if capabilities.single_ended && spec.direction != Direction::Send {
        let remedy = say!("it has only one end; leave out the direction");
        return Err(EngineError::unsupported(say!("`--reverse` or `--both` on {}", spec.transport), remedy));
    }
    Ok(())
}

pub(crate) fn refuse_rate(spec: &Spec) -> Result<(), EngineError> {
    if spec.rate_bps.is_some() {
        return Err(EngineError::unsupported(
            say!("`--rate` for {}", spec.pattern),
            say!("only streams have a rate; leave it out"),
        ));
    }
    Ok(())
}
