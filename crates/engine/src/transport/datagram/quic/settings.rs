//! What the two ends of a QUIC connection agree on, and what each decides for itself.

use std::sync::Arc;
use std::time::Duration;

use model::EndOptions;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, EndpointConfig, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use rustls::CipherSuite;
use text::say;

use crate::core::EngineError;
use crate::transport::certificate::{self, Identity};

/// The one cipher suite that is offered, so that two measurements do not differ in it; QUIC's first packets need it
/// anyway (RFC 9001, section 5).
pub(super) const SUITE: CipherSuite = CipherSuite::TLS13_AES_128_GCM_SHA256;

/// Flow control windows and the send buffer in bytes: as much as TCP's autotuning gives by default.
const WINDOW: u32 = 4 << 20;
/// How long the token of a Retry is valid on a path of usual length.
const RETRY_VALID: Duration = Duration::from_secs(15);
/// A packet at least this often shows whether the other end is still there.
const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// Largest datagram that discovery tries: a jumbo frame is what real links carry.
const LARGEST_MTU: u32 = 9_000;

/// Headers of IP and UDP in bytes.
pub(super) fn headers(v6: bool) -> u32 {
    if v6 { 48 } else { 28 }
}

/// The congestion control that an end requests.
pub(super) fn congestion(end: &EndOptions) -> Result<&'static str, EngineError> {
    match end.cc.as_deref() {
        None | Some("cubic") => Ok("cubic"),
        Some("reno" | "newreno") => Ok("newreno"),
        Some("bbr") => Ok("bbr"),
        Some(other) => {
            let remedy = "QUIC does not use the kernel's; use cubic, newreno or bbr";
            Err(EngineError::unsupported(say!("the congestion control '{other}' on quic"), remedy))
        }
    }
}

/// One end's transport parameters for a route of `mtu` bytes.
pub(super) fn transport(cc: &str, mtu: u32, v6: bool, segments: bool) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let controller: Arc<dyn ControllerFactory + Send + Sync> = match cc {
        "newreno" => Arc::new(NewRenoConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    };
    let largest = u16::try_from(mtu.min(LARGEST_MTU).saturating_sub(headers(v6))).unwrap_or(u16::MAX);
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(largest);
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(u64::from(WINDOW))
        .max_idle_timeout(None)
        .keep_alive_interval(Some(KEEP_ALIVE))
        .mtu_discovery_config(Some(discovery))
        .congestion_controller_factory(controller)
        .enable_segmentation_offload(segments);
    Arc::new(config)
}

/// Takes datagrams of any size.
pub(super) fn endpoint() -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::default();
    // The limit is the one that RFC 9000 (section 18.2) gives, so it cannot be refused.
    let _ = config.max_udp_payload_size(65_527);
    Arc::new(config)
}

/// The passive end's configuration without transport parameters, which depend on the route.
pub(super) fn server(identity: &Identity, patience: Duration) -> Result<ServerConfig, EngineError> {
    let crypto = QuicServerConfig::try_from(identity.server(Some(&[SUITE]))?);
    let crypto = crypto.map_err(|error| EngineError::unsupported("QUIC with this build", error.to_string()))?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.migration(false).retry_token_lifetime(RETRY_VALID + patience);
    Ok(config)
}

/// The active end's configuration.
pub(super) fn client(fingerprint: &[u8], transport: Arc<TransportConfig>) -> Result<ClientConfig, EngineError> {
    let crypto = QuicClientConfig::try_from(certificate::client(fingerprint, Some(&[SUITE]))?);
    let crypto = crypto.map_err(|error| EngineError::unsupported("QUIC with this build", error.to_string()))?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport);
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_controls_are_quics_own() {
        let requested = |cc: Option<&str>| congestion(&EndOptions { cc: cc.map(Into::into), ..EndOptions::default() });
        assert_eq!(requested(None).unwrap(), "cubic");
        assert_eq!(requested(Some("reno")).unwrap(), "newreno");
        let refused = requested(Some("vegas")).unwrap_err().to_string();
        assert!(refused.contains("vegas") && refused.contains("bbr"), "{refused}");
    }
}
