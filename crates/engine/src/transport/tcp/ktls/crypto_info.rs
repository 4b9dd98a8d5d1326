//! The keys of a direction for kernel TLS: the `tls12_crypto_info_*` structures of linux/tls.h, which serve TLS 1.3
//! too.

use rustls::ConnectionTrafficSecrets;

/// The structure for records from number `sequence` on; `None` for a cipher that kernel TLS does not support.
///
/// All have the layout version, cipher (both in host byte order), IV, key, salt, record number (big-endian), without
/// padding. The salt is the front of the 12 bytes that TLS 1.3 (RFC 8446, section 5.3) calls the IV; ChaCha20-Poly1305
/// has none.
pub(super) fn crypto_info(sequence: u64, secrets: &ConnectionTrafficSecrets) -> Option<Vec<u8>> {
    let (cipher, key, iv, salt_bytes) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
            (libc::TLS_CIPHER_AES_GCM_128, key, iv, libc::TLS_CIPHER_AES_GCM_128_SALT_SIZE)
        }
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => {
            (libc::TLS_CIPHER_AES_GCM_256, key, iv, libc::TLS_CIPHER_AES_GCM_256_SALT_SIZE)
        }
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            (libc::TLS_CIPHER_CHACHA20_POLY1305, key, iv, libc::TLS_CIPHER_CHACHA20_POLY1305_SALT_SIZE)
        }
        _ => return None,
    };
    let (salt, iv) = iv.as_ref().split_at(salt_bytes);
    let (version, cipher) = (libc::TLS_1_3_VERSION.to_ne_bytes(), cipher.to_ne_bytes());
    Some([&version[..], &cipher, iv, key.as_ref(), salt, &sequence.to_be_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use rustls::crypto::cipher::{
        AeadKey, InboundOpaqueMessage, Iv, OutboundChunks, OutboundPlainMessage, Tls13AeadAlgorithm,
    };
    use rustls::crypto::ring::cipher_suite;
    use rustls::{
        ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConnection,
        SupportedCipherSuite,
    };

    use super::*;
    use crate::transport::certificate::{self, Identity};
    use std::io::{Read, Write};
    use std::sync::Arc;

    const SEQUENCE: u64 = 0x0102_0304_0506_0708;
    const SEQUENCE_BYTES: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    const IV: [u8; 12] = [0xa0, 0xa1, 0xa2, 0xa3, 0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7];

    fn key() -> [u8; 32] {
        std::array::from_fn(|index| 0x20 + index as u8)
    }

    fn head(cipher: u16) -> Vec<u8> {
        [0x0304_u16.to_ne_bytes(), cipher.to_ne_bytes()].concat()
    }

    fn aead(suite: SupportedCipherSuite) -> &'static dyn Tls13AeadAlgorithm {
        suite.tls13().unwrap().aead_alg
    }

    #[test]
    fn aes_256_has_the_kernels_layout() {
        type Layout = libc::tls12_crypto_info_aes_gcm_256;
        let secrets = ConnectionTrafficSecrets::Aes256Gcm { key: key().into(), iv: IV.into() };
        let reported = crypto_info(SEQUENCE, &secrets).unwrap();
        assert_eq!((reported.len(), size_of::<Layout>()), (56, 56));
        assert_eq!(reported[..4], head(52));
        assert_eq!(reported[offset_of!(Layout, iv)..][..8], IV[4..]);
        assert_eq!(reported[offset_of!(Layout, key)..][..32], key());
        assert_eq!(reported[offset_of!(Layout, salt)..][..4], IV[..4]);
        assert_eq!(reported[offset_of!(Layout, rec_seq)..], SEQUENCE_BYTES);
    }

    #[test]
    fn aes_128_has_a_shorter_key() {
        // Keys of this length come from the library's own suites only: the test makes a handshake with only this
        // suite.
        let (client, _) = shake_hands(cipher_suite::TLS13_AES_128_GCM_SHA256);
        let secrets = client.dangerous_extract_secrets().unwrap();
        let ConnectionTrafficSecrets::Aes128Gcm { key, iv } = &secrets.tx.1 else { panic!("another cipher") };
        let reported = crypto_info(SEQUENCE, &secrets.tx.1).unwrap();
        let iv = iv.as_ref();
        assert_eq!(reported.len(), size_of::<libc::tls12_crypto_info_aes_gcm_128>());
        assert_eq!(reported, [&head(51)[..], &iv[4..], key.as_ref(), &iv[..4], &SEQUENCE_BYTES].concat());
    }

    #[test]
    fn chacha_has_no_salt() {
        let secrets = ConnectionTrafficSecrets::Chacha20Poly1305 { key: key().into(), iv: IV.into() };
        let reported = crypto_info(SEQUENCE, &secrets).unwrap();
        assert_eq!(reported.len(), size_of::<libc::tls12_crypto_info_chacha20_poly1305>());
        assert_eq!(reported, [&head(54)[..], &IV, &key(), &SEQUENCE_BYTES].concat());
    }

    /// The two ends of a handshake in memory, after each has sent a message to the other.
    fn shake_hands(suite: SupportedCipherSuite) -> (ClientConnection, ServerConnection) {
        let identity = Identity::new().unwrap();
        let suites = Some(&[suite.suite()][..]);
        let (mut here, mut there) =
            (certificate::client(&identity.fingerprint(), suites).unwrap(), identity.server(suites).unwrap());
        Arc::make_mut(&mut here).enable_secret_extraction = true;
        Arc::make_mut(&mut there).enable_secret_extraction = true;
        let mut client = ClientConnection::new(here, certificate::server_name()).unwrap();
        let mut server = ServerConnection::new(there).unwrap();
        let mut word = [0; 5];
        while client.is_handshaking() || server.is_handshaking() {
            carry(&mut client, &mut server);
            carry(&mut server, &mut client);
        }
        client.writer().write_all(b"hello").unwrap();
        carry(&mut client, &mut server);
        server.reader().read_exact(&mut word).unwrap();
        server.writer().write_all(b"again").unwrap();
        carry(&mut server, &mut client);
        client.reader().read_exact(&mut word).unwrap();
        (client, server)
    }

    fn carry<A, B>(from: &mut rustls::ConnectionCommon<A>, to: &mut rustls::ConnectionCommon<B>)
    where
        A: rustls::SideData,
        B: rustls::SideData,
    {
        let mut wire = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut wire).unwrap();
        }
        take(to, &wire);
    }

    fn take<B: rustls::SideData>(to: &mut rustls::ConnectionCommon<B>, mut wire: &[u8]) {
        while !wire.is_empty() {
            to.read_tls(&mut wire).unwrap();
            to.process_new_packets().unwrap();
        }
    }

    /// Key, nonce and first record number as the kernel reads them: salt before IV (net/tls/tls_sw.c).
    fn as_the_kernel_reads(reported: &[u8], salt_bytes: usize) -> (AeadKey, Iv, u64) {
        let (iv, rest) = reported[4..].split_at(12 - salt_bytes);
        let (key, rest) = rest.split_at(32);
        let (salt, sequence) = rest.split_at(salt_bytes);
        let nonce: [u8; 12] = [salt, iv].concat().try_into().unwrap();
        (<[u8; 32]>::try_from(key).unwrap().into(), nonce.into(), u64::from_be_bytes(sequence.try_into().unwrap()))
    }

    #[test]
    fn records_made_from_it_are_those_that_the_other_end_expects() {
        for (suite, salt_bytes) in
            [(cipher_suite::TLS13_AES_256_GCM_SHA384, 4), (cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, 0)]
        {
            let (client, mut server) = shake_hands(suite);
            let secrets = client.dangerous_extract_secrets().unwrap();
            let reported = crypto_info(secrets.tx.0, &secrets.tx.1).unwrap();
            let (key, iv, first) = as_the_kernel_reads(&reported, salt_bytes);
            let mut sender = aead(suite).encrypter(key, iv);
            for (number, (typ, body)) in (first..).zip([
                (ContentType::ApplicationData, &b"one"[..]),
                (ContentType::ApplicationData, b"two"),
                (ContentType::Alert, &[1, 0]),
            ]) {
                let message = OutboundPlainMessage {
                    typ,
                    version: ProtocolVersion::TLSv1_2,
                    payload: OutboundChunks::Single(body),
                };
                take(&mut server, &sender.encrypt(message, number).unwrap().encode());
            }
            let mut received = Vec::new();
            server.reader().read_to_end(&mut received).unwrap();
            assert_eq!(received, b"onetwo");

            // The other direction: what the other end sends now, decrypted with the receive keys given to the kernel.
            let reported = crypto_info(secrets.rx.0, &secrets.rx.1).unwrap();
            let (key, iv, next) = as_the_kernel_reads(&reported, salt_bytes);
            let mut wire = Vec::new();
            server.writer().write_all(b"three").unwrap();
            server.write_tls(&mut wire).unwrap();
            let record =
                InboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, &mut wire[5..]);
            let plain = aead(suite).decrypter(key, iv).decrypt(record, next).unwrap();
            assert_eq!((plain.typ, plain.payload), (ContentType::ApplicationData, &b"three"[..]));
        }
    }
}
