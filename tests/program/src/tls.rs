//! The TLS of control connections by hand: bare public keys (RFC 7250), of which each side takes any.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    ServerConnection, SignatureScheme, version,
};
use sha2::{Digest, Sha256};

/// Longest wait for bytes of the peer.
const LIMIT: Duration = Duration::from_secs(30);

/// The key of all agents of a test, real ones and its own, unless it names another: clients take it for their user's own key.
pub(crate) static KEY: LazyLock<String> = LazyLock::new(fresh_key);

/// A key that `thru` makes, as the text of a PEM file.
///
/// # Panics
/// It makes none.
#[must_use]
pub fn fresh_key() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent.key");
    let mut command = Command::new(crate::binary::thru());
    let made = command.args(["agent", "fingerprint", "--key-file"]).arg(&file).output().expect("thru starts");
    assert!(made.status.success(), "{made:?}");
    std::fs::read_to_string(file).expect("the key")
}

/// Writes the key of this test's agents into a folder.
pub(crate) fn key_in(folder: &Path) -> PathBuf {
    private_file(&folder.join("agent.key"), &KEY)
}

/// Writes a file that only its owner can read.
pub(crate) fn private_file(file: &Path, text: &str) -> PathBuf {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file).and_then(|mut open| open.write_all(text.as_bytes())).expect("the file is written");
    file.to_owned()
}

/// A TLS connection that several threads may use: one reads, others write.
#[derive(Debug)]
pub(crate) struct Tls {
    socket: TcpStream,
    session: Mutex<Connection>,
    /// SHA-256 of the server's public key.
    key: [u8; 32],
    /// That of the client's, if it has shown one.
    client: Option<[u8; 32]>,
}

impl Tls {
    /// The client's side, after the handshake, with the key in this PEM file's text; `None` if the peer has none.
    pub(crate) fn connect(socket: TcpStream, own: Option<&str>) -> Option<Self> {
        let provider = Arc::new(ring::default_provider());
        let any_key = AnyKey(provider.signature_verification_algorithms);
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .expect("TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(any_key))
            .with_client_cert_resolver(Arc::new(OwnKey(own.map(bare_key))));
        let name = ServerName::try_from("throughline").expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let client = own.map(|own| digest(&bare_key(own).cert[0]));
        let mut tls = Self { socket, session: Mutex::new(session.into()), key: [0; 32], client };
        tls.handshake()?;
        let shown = tls.lock().peer_certificates()?.first()?.clone();
        tls.key = digest(&shown);
        Some(tls)
    }

    /// The server's side, with the key in this PEM file's text.
    pub(crate) fn accept(socket: TcpStream, pem: &str) -> Option<Self> {
        let shown = bare_key(pem);
        let key = digest(&shown.cert[0]);
        let provider = Arc::new(ring::default_provider());
        let any_key = AnyKey(provider.signature_verification_algorithms);
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .expect("TLS 1.3")
            .with_client_cert_verifier(Arc::new(any_key))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(shown)));
        let session = ServerConnection::new(Arc::new(config)).expect("a session");
        let mut tls = Self { socket, session: Mutex::new(session.into()), key, client: None };
        tls.handshake()?;
        let client = tls.lock().peer_certificates().and_then(|shown| shown.first()).map(|shown| digest(shown));
        tls.client = client;
        Some(tls)
    }

    /// SHA-256 of the server's public key, and the secret of this connection.
    pub(crate) fn binding(&self) -> ([u8; 32], [u8; 32]) {
        let exporter = self.lock().export_keying_material([0; 32], b"EXPORTER-throughline-control", None);
        (self.key, exporter.expect("after the handshake"))
    }

    /// SHA-256 of the client's public key.
    pub(crate) fn client(&self) -> Option<[u8; 32]> {
        self.client
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads plaintext; an error if the peer is silent for [`LIMIT`]. The lock is not held while it waits.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.lock().reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            self.more()?;
        }
    }

    /// Sends plaintext.
    pub(crate) fn write_all(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut session = self.lock();
        // A session holds so much plaintext at once.
        for part in bytes.chunks(16 << 10) {
            session.writer().write_all(part)?;
            self.flush(&mut session)?;
        }
        Ok(())
    }

    fn handshake(&self) -> Option<()> {
        loop {
            let mut session = self.lock();
            self.flush(&mut session).ok()?;
            if !session.is_handshaking() {
                return Some(());
            }
            drop(session);
            self.more().ok()?;
        }
    }

    fn flush(&self, session: &mut Connection) -> std::io::Result<()> {
        while session.wants_write() {
            session.write_tls(&mut &self.socket)?;
        }
        Ok(())
    }

    /// Waits for bytes of the peer and decrypts them.
    fn more(&self) -> std::io::Result<()> {
        let deadline = Instant::now() + LIMIT;
        let step = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        while poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&step))? == 0 {
            if Instant::now() > deadline {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        let mut session = self.lock();
        if session.read_tls(&mut &self.socket)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let failed = session.process_new_packets().err();
        // An alert tells the peer why.
        self.flush(&mut session)?;
        failed.map_or(Ok(()), |error| Err(std::io::Error::other(error)))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.session.lock().expect("no thread panics with it")
    }
}

/// The key in a PEM file's text.
fn bare_key(pem: &str) -> Arc<CertifiedKey> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).expect("a key");
    let key = ring::sign::any_eddsa_type(&der).expect("a key");
    let public = key.public_key().expect("its public half").to_vec();
    Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key))
}

fn digest(key: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// The key that a client shows, if any.
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
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
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
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, key, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
