//! What several patterns refuse.

use model::{Direction, Spec};

use crate::core::EngineError;
use crate::transport::{Capabilities, names};

pub(crate) fn needs_streams(spec: &Spec, capabilities: &Capabilities, what: &str) -> Result<(), EngineError> {
    if capabilities.datagram {
        return Err(EngineError::unsupported(
            format!("{what} on {}", spec.transport),
            format!("use {}", names(|other| other.capabilities().is_stream_between_two())),
        ));
    }
    Ok(())
}

/// A transport with one end has no direction to reverse.
pub(crate) fn refuse_direction(spec: &Spec, capabilities: &Capabilities) -> Result<(), EngineError> {
    if capabilities.single_ended && spec.direction != Direction::Send {
        let remedy = "it has one end; leave `--reverse` and `--both` out";
        return Err(EngineError::unsupported(format!("a direction for {}", spec.transport), remedy));
    }
    Ok(())
}

pub(crate) fn refuse_rate(spec: &Spec) -> Result<(), EngineError> {
    if spec.rate_bps.is_some() {
        return Err(EngineError::unsupported(
            format!("`--rate` for {}", spec.pattern),
            "rates are for streams; leave `--rate` out",
        ));
    }
    Ok(())
}
