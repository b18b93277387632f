//! UUIDs of messages, for programs: made from where a message is, so that nothing has to keep them.

use uuid::{Builder, Uuid};

use super::entry::Seq;
use crate::stdx::hash::sha256_hex;

/// The id of a part of a message: the same whenever it is asked for, and another one in every session.
pub fn of_part(session: &str, seq: Seq, part: usize) -> Uuid {
    let digest = sha256_hex(format!("{session}/{seq}/{part}").as_bytes());
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digest[2 * at..2 * at + 2], 16).unwrap_or_default();
    }
    Builder::from_random_bytes(bytes).into_uuid()
}
