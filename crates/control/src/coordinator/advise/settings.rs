//! The host settings that a search has in force at both ends.

use model::HostSettings;

use super::super::Pair;
use crate::ControlError;

/// What is in force; everything else is as it was before the search.
#[derive(Debug, Default)]
pub(super) struct InForce(HostSettings);

impl InForce {
    /// Makes `wanted` the settings in force, and nothing else.
    pub(super) async fn put(&mut self, pair: &mut Pair, wanted: &HostSettings) -> Result<(), ControlError> {
        if self.0 == *wanted {
            return Ok(());
        }
        self.put_back(pair).await?;
        // Before it is asked for: an end that failed in the middle is to be put back too.
        self.0 = wanted.clone();
        let changed = set(pair, wanted).await;
        if changed.is_err() {
            self.put_back(pair).await?;
        }
        changed
    }

    /// Puts both hosts back.
    pub(super) async fn put_back(&mut self, pair: &mut Pair) -> Result<(), ControlError> {
        let had = std::mem::take(&mut self.0);
        if !had.near.is_empty() {
            pair.near.untune().await?;
        }
        if let Some(far) = pair.far.as_mut().filter(|_| !had.far.is_empty()) {
            far.untune().await?;
        }
        Ok(())
    }
}

async fn set(pair: &mut Pair, wanted: &HostSettings) -> Result<(), ControlError> {
    if !wanted.near.is_empty() {
        pair.near.tune(&wanted.near).await?;
    }
    if let Some(far) = pair.far.as_mut().filter(|_| !wanted.far.is_empty()) {
        far.tune(&wanted.far).await?;
    }
    Ok(())
}
