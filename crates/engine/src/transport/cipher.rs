//! The names of an encryption, as tallies give them.

/// The only version that either end speaks.
pub(crate) const VERSION: &str = "TLSv1.3";

/// rustls says `TLS13_` where IANA's register of cipher suites has `TLS_`.
pub(crate) fn iana(suite: &str) -> String {
    suite.replacen("TLS13_", "TLS_", 1)
}
