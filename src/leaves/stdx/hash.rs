//! SHA-256, through the library that TLS brings anyway.

use std::fmt::Write;

/// Hashes bytes; lower-case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The first eight bytes of the SHA-256 of these parts, one behind the other.
pub fn short(parts: &[&[u8]]) -> u64 {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    parts.iter().for_each(|part| context.update(part));
    let digest = context.finish();
    digest.as_ref().iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}
