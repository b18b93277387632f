//! Git's index, as far as it says which folders are repositories of their own.

/// The paths of submodules in an index.
///
/// # Errors
/// Why the index cannot be understood.
pub(super) fn submodules(bytes: &[u8], hash: usize) -> Result<Vec<Vec<u8>>, &'static str> {
    walk(bytes, hash, |mode| mode & 0xf000 == 0xe000).ok_or("cannot be read reliably")?
}

/// The paths of everything in an index.
///
/// # Errors
/// Why the index cannot be understood.
pub(super) fn names(bytes: &[u8], hash: usize) -> Result<Vec<Vec<u8>>, &'static str> {
    walk(bytes, hash, |_| true).ok_or("cannot be read reliably")?
}

/// None where the bytes end too early.
fn walk(bytes: &[u8], hash: usize, keep: impl Fn(u32) -> bool) -> Option<Result<Vec<Vec<u8>>, &'static str>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let mut found = Vec::new();
    let mut at = 12;
    // The path before, of which version 4 keeps the start.
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..number(8)? {
        let mode = number(at + 24)?;
        let flags_at = at + 40 + hash;
        let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let extended = if flags & 0x4000 != 0 { 2 } else { 0 };
        let mut name_at = flags_at + 2 + extended;
        if version == 4 {
            let (stripped, length) = varint(bytes.get(name_at..)?)?;
            name_at += length;
            path.truncate(path.len().checked_sub(stripped)?);
        }
        let rest = bytes.get(name_at..)?;
        let length = match usize::from(flags & 0xfff) {
            length if version < 4 && length < 0xfff && rest.get(length) == Some(&0) => length,
            _ => rest.iter().position(|byte| *byte == 0)?,
        };
        let name = &rest[..length];
        let kept = keep(mode);
        if version == 4 {
            path.extend_from_slice(name);
            if kept {
                found.push(path.clone());
            }
            at = name_at + length + 1;
        } else {
            if kept {
                found.push(name.to_vec());
            }
            let used = name_at + length - at;
            at += (used + 8) & !7;
        }
    }
    // Extensions in lower case change what the entries mean.
    while at + hash < bytes.len() {
        if !bytes.get(at)?.is_ascii_uppercase() {
            return Some(Err("is split or sparse"));
        }
        at += 8 + usize::try_from(number(at + 4)?).ok()?;
    }
    Some(Ok(found))
}

/// Git's number of variable length, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = usize::from(bytes.first()? & 0x7f);
    let mut length = 1;
    while bytes.get(length - 1)? & 0x80 != 0 {
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(bytes.get(length)? & 0x7f);
        length += 1;
    }
    Some((value, length))
}
