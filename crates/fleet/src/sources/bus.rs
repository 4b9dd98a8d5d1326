//! The hosts whose agents are on a bus.

use ::bus::place;
use command::{Failure, setup};
use control::ControlError;
use plan::{Fleet, FleetHost};

use super::source::FleetSource;

pub(super) const NATS: FleetSource =
    FleetSource { name: "nats", what: "//SERVER: the agents on this bus", read: |rest| read(&format!("nats:{rest}")) };
pub(super) const NATS_TLS: FleetSource =
    FleetSource { name: "tls", what: "//SERVER: the same, with TLS", read: |rest| read(&format!("tls:{rest}")) };

fn read(named: &str) -> Result<Fleet, Failure> {
    let failed = |error: ::bus::BusError| Failure::from(ControlError::from(error));
    let at = place(named).map_err(failed)?;
    if at.name.is_some() {
        return Err(Failure::usage(format!("{named} is a single host on a bus: omit its name to use all hosts")));
    }
    let buses = setup::buses()?;
    let present = setup::runtime()?.block_on(async { buses.to(&at).await?.present().await }).map_err(failed)?;
    let host = |name: &str| FleetHost { control: at.of(name), ..FleetHost::named(name) };
    Ok(Fleet { hosts: present.iter().map(|agent| host(&agent.name)).collect(), ..Fleet::default() })
}
