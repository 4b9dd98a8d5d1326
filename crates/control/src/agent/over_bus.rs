//! Coordinators that reach the agent over a bus: the same greeting and sessions as over TCP, without the magic that tells a port's
//! protocols apart.

use std::sync::Arc;
use std::time::Instant;

use bus::{Arrival, Attendance, Bus, Contact, attend};
use text::say;

use super::addresses::{Addresses, OVER_BUS};
use super::session::Session;
use super::{BusOptions, GREETING_LIMIT, Shared, admit};
use crate::patience::ControlPath;
use crate::{AgentKey, ControlError};

/// Takes the agent's name on the bus, and serves the coordinators that reach it there.
///
/// # Errors
/// The bus is not reached, or another agent has the name.
pub(super) async fn join(
    shared: &Arc<Shared>,
    key: &AgentKey,
    options: &BusOptions,
) -> Result<Attendance, ControlError> {
    let bus = Bus::connect(&options.place, &options.access).await?;
    let name = options.place.name.clone().unwrap_or_default();
    let here = bus.own_address();
    let contact = Contact {
        address: here,
        port: shared.port,
        version: shared.options.version.clone(),
        key: key.fingerprint().to_string(),
    };
    let logger = shared.clone();
    let (attendance, mut arrivals) = attend(&bus, &name, contact, move |line| logger.log(&line.into())).await?;
    shared.log(&say!("on the bus {} as {name}", options.place.bus));
    let (shared, key) = (shared.clone(), key.clone());
    tokio::spawn(async move {
        while let Some(arrival) = arrivals.recv().await {
            let (shared, key) = (shared.clone(), key.clone());
            let addresses = Addresses { here, peer: Some(OVER_BUS), scope: 0 };
            let greeting =
                async move { admit(&shared, OVER_BUS, GREETING_LIMIT, greet(&shared, &key, arrival, addresses)).await };
            tokio::spawn(greeting);
        }
    });
    Ok(attendance)
}

async fn greet(shared: &Arc<Shared>, key: &AgentKey, arrival: Arrival, addresses: Addresses) -> Option<Session> {
    if !shared.gate.may_shake_hands(OVER_BUS, Instant::now()) {
        return None;
    }
    let (stream, binding) = key.accept(arrival.stream).await.ok()?;
    let peer = format!("client {} over the bus", arrival.client);
    Session::new(shared.clone(), stream, addresses, peer, binding, ControlPath::default()).identified().await
}
