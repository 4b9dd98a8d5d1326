//! The certificate of one measurement. The passive end makes it and sends its SHA-256 over the authenticated control
//! connection; the active end accepts this certificate and no other.

use std::sync::Arc;

use ::ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CipherSuite, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme, version};
use text::say;

use crate::core::EngineError;

/// The name in the certificate; nothing depends on it.
pub(super) const NAME: &str = "throughline";

/// A fresh key and a self-signed certificate.
pub(super) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Creates one.
    pub(super) fn new() -> Result<Self, EngineError> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()])
            .map_err(|error| failed("make a certificate for this measurement", &error))?;
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        Ok(Self { certificate: made.cert.der().clone(), key })
    }

    /// SHA-256 of the certificate, for the rendezvous.
    pub(super) fn fingerprint(&self) -> Vec<u8> {
        digest(&SHA256, &self.certificate).as_ref().to_vec()
    }

    /// The passive end's side of TLS 1.3 with the given cipher suites, or all of them.
    pub(super) fn server(&self, suites: Option<&[CipherSuite]>) -> Result<Arc<ServerConfig>, EngineError> {
        let config = ServerConfig::builder_with_provider(provider(suites))
            .with_protocol_versions(&[&version::TLS13])
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            });
        let mut config = config.map_err(|error| failed("set up TLS", &error))?;
        // Every connection of a measurement makes the whole handshake; tickets would only be traffic.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// The active end's side: trusts the certificate with the SHA-256 of the rendezvous.
pub(super) fn client(fingerprint: &[u8], suites: Option<&[CipherSuite]>) -> Result<Arc<ClientConfig>, EngineError> {
    let provider = provider(suites);
    let pinned = Pinned { fingerprint: fingerprint.to_vec(), provider: provider.clone() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .map(|builder| builder.dangerous().with_custom_certificate_verifier(Arc::new(pinned)).with_no_client_auth())
        .map_err(|error| failed("set up TLS", &error))?;
    Ok(Arc::new(config))
}

/// The name that a client requests.
pub(super) fn server_name() -> ServerName<'static> {
    // A constant that is a valid DNS name.
    ServerName::try_from(NAME).unwrap_or_else(|_| ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into()))
}

fn provider(suites: Option<&[CipherSuite]>) -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    if let Some(suites) = suites {
        provider.cipher_suites.retain(|suite| suites.contains(&suite.suite()));
    }
    Arc::new(provider)
}

fn failed(operation: &str, error: &dyn std::error::Error) -> EngineError {
    EngineError::unsupported(say!("cannot {operation}"), error.to_string())
}

/// Accepts one certificate by its SHA-256, with any name and dates.
#[derive(Debug)]
struct Pinned {
    fingerprint: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *digest(&SHA256, certificate).as_ref() == self.fingerprint[..] {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General("the certificate is not the one that the agent announced".into()))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_announced_certificate_is_taken() {
        let (announced, other) = (Identity::new().unwrap(), Identity::new().unwrap());
        let pinned = Pinned { fingerprint: announced.fingerprint(), provider: provider(None) };
        let verify = |identity: &Identity| {
            pinned.verify_server_cert(&identity.certificate, &[], &server_name(), &[], UnixTime::now())
        };
        assert!(verify(&announced).is_ok());
        assert!(verify(&other).is_err());
        assert_ne!(announced.fingerprint(), other.fingerprint());
    }
}
