//! TLS 1.3 (RFC 8446) beneath control connections. An agent has a key of its own and shows its public half without a certificate
//! (RFC 7250); a coordinator shows the key of its user in the same way, if there is one. Each recognizes the other's key by its
//! fingerprint. The proofs of a token or code cover the keys and the connection.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring as provider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme, version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::proof::EXPORTER_LABEL;
use crate::proof::auth::Binding;
use crate::proof::fingerprint::Fingerprint;

/// A user's private key: their agents accept connections with it, and agents that invited them recognize them by it.
#[derive(Clone)]
pub struct AgentKey {
    config: Arc<ServerConfig>,
    shown: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

/// Bytes of a record at most: on a slow link, a message shows by its first records that it is coming.
const RECORD: usize = 1_400;
/// The name that the protocol requires of a client; it is not sent, and nothing depends on it.
const NAME: &str = "throughline";

impl AgentKey {
    /// A new key as the text of a PEM file (Ed25519, PKCS #8).
    ///
    /// # Errors
    /// The kernel gives no random bits.
    pub fn fresh_pem() -> io::Result<String> {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|_| io::Error::other("cannot get random bits from the kernel"))?;
        let digits = STANDARD.encode(key.as_ref());
        let lines: Vec<&str> = digits.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        Ok(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n")))
    }

    /// The key in the text of a PEM file.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if there is no Ed25519 key in it.
    pub fn from_pem(text: &str) -> io::Result<Self> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let der = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
        let key = provider::sign::any_eddsa_type(&der).map_err(|error| wrong(error.to_string()))?;
        let public = key.public_key().ok_or_else(|| wrong("it has no public half".into()))?.to_vec();
        let fingerprint = Fingerprint::of(&public);
        let shown = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key));
        let config = accepting(shown.clone()).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { config: Arc::new(config), shown, fingerprint })
    }

    /// A key that is stored nowhere.
    ///
    /// # Errors
    /// The kernel gives no random bits.
    pub fn fresh() -> io::Result<Self> {
        Self::from_pem(&Self::fresh_pem()?)
    }

    /// What others recognize.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The agent's side of a handshake.
    ///
    /// # Errors
    /// The peer does not speak TLS 1.3, or the connection is lost.
    pub(crate) async fn accept<T>(&self, stream: T) -> io::Result<(server::TlsStream<T>, Binding)>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let stream = TlsAcceptor::from(self.config.clone()).accept(stream).await?;
        let session = stream.get_ref().1;
        let exporter = session.export_keying_material([0; 32], EXPORTER_LABEL, None).map_err(io::Error::other)?;
        let binding = Binding { key: self.fingerprint, client: shown(session.peer_certificates()), exporter };
        Ok((stream, binding))
    }
}

impl std::fmt::Debug for AgentKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AgentKey({})", self.fingerprint)
    }
}

/// The coordinator's side of a handshake, which shows `own` to an agent. The peer has the private half of the key in the result;
/// whether that is the right one is for the caller to decide, before it sends anything.
///
/// # Errors
/// The peer does not speak TLS 1.3 with a bare key, its signature is wrong, or the connection is lost.
pub(crate) async fn connect<T>(stream: T, own: Option<&AgentKey>) -> io::Result<(client::TlsStream<T>, Binding)>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let provider = provider::default_provider();
    let any_key = AnyKey(provider.signature_verification_algorithms);
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(any_key))
        .with_client_cert_resolver(Arc::new(OwnKey(own.map(|own| own.shown.clone()))));
    config.enable_sni = false;
    config.max_fragment_size = Some(RECORD);
    config.resumption = Resumption::disabled();
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let session = stream.get_ref().1;
    let key = shown(session.peer_certificates())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the peer presented no key"))?;
    let exporter = session.export_keying_material([0; 32], EXPORTER_LABEL, None).map_err(io::Error::other)?;
    Ok((stream, Binding { key, client: own.map(AgentKey::fingerprint), exporter }))
}

/// What an agent with this key accepts: clients that show any key, or none.
fn accepting(shown: Arc<CertifiedKey>) -> Result<ServerConfig, rustls::Error> {
    let provider = provider::default_provider();
    let any_key = AnyKey(provider.signature_verification_algorithms);
    let config = ServerConfig::builder_with_provider(Arc::new(provider)).with_protocol_versions(&[&version::TLS13])?;
    let resolver = Arc::new(AlwaysResolvesServerRawPublicKeys::new(shown));
    let mut config = config.with_client_cert_verifier(Arc::new(any_key)).with_cert_resolver(resolver);
    config.send_tls13_tickets = 0;
    config.max_fragment_size = Some(RECORD);
    Ok(config)
}

/// The key that the peer has shown.
fn shown(keys: Option<&[CertificateDer<'_>]>) -> Option<Fingerprint> {
    keys?.first().map(|key| Fingerprint::of(key))
}

/// The key that a coordinator shows. Without one it still offers bare keys, which are all that agents accept.
#[derive(Debug)]
struct OwnKey(Option<Arc<CertifiedKey>>);

impl ResolvesClientCert for OwnKey {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }

    fn only_raw_public_keys(&self) -> bool {
        true
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

/// Accepts every key that signed the handshake.
#[derive(Debug)]
struct AnyKey(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is spoken here".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for AnyKey {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, key, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn both_sides_see_the_same_keys_and_the_same_secret_of_the_connection() {
        let (key, client) = (AgentKey::fresh().unwrap(), AgentKey::fresh().unwrap());
        let mut bindings = Vec::new();
        for own in [None, Some(&client)] {
            let (mine, theirs) = duplex(64 << 10);
            let (one, other) = tokio::join!(connect(mine, own), key.accept(theirs));
            let ((mut coordinator, seen), (mut agent, accepted)) = (one.unwrap(), other.unwrap());
            assert_eq!(seen, accepted);
            assert_eq!((seen.key, seen.client), (key.fingerprint(), own.map(AgentKey::fingerprint)));
            coordinator.write_all(b"hello").await.unwrap();
            coordinator.flush().await.unwrap();
            let mut bytes = [0; 5];
            agent.read_exact(&mut bytes).await.unwrap();
            assert_eq!(&bytes, b"hello");
            bindings.push(seen.exporter);
        }
        assert_ne!(bindings[0], bindings[1], "a connection has a secret of its own");
        assert_ne!(key.fingerprint(), AgentKey::fresh().unwrap().fingerprint());
    }

    #[tokio::test]
    async fn an_agent_without_the_private_half_is_refused() {
        // It shows the key of another agent and signs with its own.
        let (real, own) = (AgentKey::fresh().unwrap(), AgentKey::fresh_pem().unwrap());
        let shown = {
            let (mine, theirs) = duplex(64 << 10);
            let (connected, _agent) = tokio::join!(connect(mine, None), real.accept(theirs));
            connected.unwrap().0.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(own.as_bytes()).unwrap();
        let forged = CertifiedKey::new(vec![shown], provider::sign::any_eddsa_type(&der).unwrap());
        let config = accepting(Arc::new(forged)).unwrap();
        let forger = AgentKey { config: Arc::new(config), ..real.clone() };
        let (mine, theirs) = duplex(64 << 10);
        let (connected, _) = tokio::join!(connect(mine, None), forger.accept(theirs));
        assert!(connected.is_err_and(|error| error.to_string().contains("BadSignature")));
    }

    #[test]
    fn a_key_is_read_from_its_file_only() {
        let pem = AgentKey::fresh_pem().unwrap();
        assert_eq!(AgentKey::from_pem(&pem).unwrap().fingerprint(), AgentKey::from_pem(&pem).unwrap().fingerprint());
        for wrong in ["", "0f1e2d3c", "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"] {
            assert_eq!(AgentKey::from_pem(wrong).unwrap_err().kind(), io::ErrorKind::InvalidData, "{wrong}");
        }
    }
}
