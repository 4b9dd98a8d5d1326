//! Two hosts at the ends of an emulated path.

use crate::emulator::Emulator;
use crate::{CrossoverSpec, DirectionSpec, Lab, LabError};

/// The options of a lab of two hosts and a path between them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PathSpec {
    /// The hosts, and the MTU and the subnets of the path.
    pub link: CrossoverSpec,
    /// The direction from `a` to `b`.
    pub forward: DirectionSpec,
    /// The direction from `b` to `a`.
    pub reverse: DirectionSpec,
    /// Seed of the random choices of both directions: with the same seed the same segments are lost, by their order.
    pub seed: u64,
}

impl PathSpec {
    /// A path with the same properties in both directions.
    #[must_use]
    pub fn symmetric(link: CrossoverSpec, direction: DirectionSpec) -> Self {
        Self { link, forward: direction.clone(), reverse: direction, seed: 1 }
    }
}

impl Lab {
    /// Makes two hosts like those of [`Lab::crossover`] and joins them by a path that this process emulates: each has
    /// a TUN device with TSO and USO, and [`Lab::emulator`] has the counters of the packets between them.
    ///
    /// # Errors
    /// As with [`Lab::crossover`], and if no TUN device can be made.
    pub fn path(spec: &PathSpec) -> Result<Self, LabError> {
        spec.forward.check(spec.link.mtu)?;
        spec.reverse.check(spec.link.mtu)?;
        let mut lab = Self::hosts_of(&spec.link)?;
        lab.emulate(spec)?;
        Ok(lab)
    }

    /// Joins the hosts by an emulated path.
    fn emulate(&mut self, spec: &PathSpec) -> Result<(), LabError> {
        let namespaces = self.hosts.each_ref().map(|host| host.namespace.clone());
        let directions = [spec.forward.clone(), spec.reverse.clone()];
        let interfaces = self.hosts.each_ref().map(|host| host.interface.clone());
        let emulator = Emulator::start(namespaces, interfaces, &directions, spec.link.mtu, spec.seed);
        self.emulator = Some(emulator.map_err(|source| LabError::Emulator { source })?);
        self.plugs().iter().try_for_each(|plug| plug.make_room(&self.scope, spec.link.mtu))?;
        self.configure("UNKNOWN")?;
        // The times of the path's changes count from when it can be used.
        self.emulator.iter().for_each(Emulator::restart);
        Ok(())
    }
}
