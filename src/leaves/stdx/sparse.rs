//! Copies the content of a file: shares its blocks where the file system can, and leaves its holes holes.

use std::fs::File;
use std::io;

/// Copies what `from` holds into `to`, which is empty. Returns how many bytes had to be copied: none where blocks are shared.
///
/// # Errors
/// What the file system says; what `to` holds then is of no use.
pub fn copy(from: &File, to: &File) -> io::Result<u64> {
    #[cfg(target_os = "linux")]
    {
        if rustix::fs::ioctl_ficlone(to, from).is_ok() {
            return Ok(0);
        }
        linux::copy(from, to)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let (mut from, mut to) = (from, to);
        io::copy(&mut from, &mut to)
    }
}

/// How many bytes of the disk a file takes: of one with holes less than its length.
#[cfg(unix)]
pub fn allocated(meta: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    meta.size().min(meta.blocks().saturating_mul(512))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;

    use rustix::fs::SeekFrom;
    use rustix::io::Errno;

    /// Bytes that are copied in one go.
    const PIECE: usize = 64 << 20;

    pub(super) fn copy(from: &File, to: &File) -> io::Result<u64> {
        let len = from.metadata()?.len();
        let (mut at, mut copied) = (0, 0);
        while at < len {
            let (start, end) = match rustix::fs::seek(from, SeekFrom::Data(at)) {
                Ok(start) => (start, rustix::fs::seek(from, SeekFrom::Hole(start)).unwrap_or(len).min(len)),
                // Nothing but a hole is left.
                Err(Errno::NXIO) => break,
                // A file system that does not know its holes.
                Err(_) => (at, len),
            };
            if start >= len {
                break;
            }
            copied += range(from, to, start, end)?;
            at = end.max(start + 1);
        }
        to.set_len(len)?;
        Ok(copied)
    }

    fn range(from: &File, to: &File, start: u64, end: u64) -> io::Result<u64> {
        let (mut read, mut written) = (start, start);
        while read < end {
            let want = usize::try_from(end - read).unwrap_or(PIECE).min(PIECE);
            match rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut written), want) {
                // It has become shorter meanwhile.
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::NOSPC) => return Err(Errno::NOSPC.into()),
                Err(_) => return by_hand(from, to, read, end).map(|rest| read - start + rest),
            }
        }
        Ok(read - start)
    }

    /// Where the kernel does not copy between these two.
    fn by_hand(from: &File, to: &File, start: u64, end: u64) -> io::Result<u64> {
        use std::os::unix::fs::FileExt;
        let mut buffer = vec![0; 128 * 1024];
        let mut at = start;
        while at < end {
            let want = usize::try_from(end - at).unwrap_or(buffer.len()).min(buffer.len());
            match from.read_at(&mut buffer[..want], at)? {
                0 => break,
                count => to.write_all_at(&buffer[..count], at)?,
            }
            at += want as u64;
        }
        Ok(at - start)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn holes_stay_holes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (len, data) in [(0, vec![]), (10, vec![0]), (40 << 20, vec![1 << 20, 30 << 20]), (8 << 20, vec![])] {
            let from = File::options().read(true).write(true).create(true).truncate(true).open(at("from")).unwrap();
            from.set_len(len).unwrap();
            data.iter().for_each(|at| from.write_all_at(b"data", *at).unwrap());
            let to = File::create(at("to")).unwrap();
            copy(&from, &to).unwrap();
            assert!(std::fs::read(at("from")).unwrap() == std::fs::read(at("to")).unwrap(), "{len}");
            let (from, to) = (from.metadata().unwrap(), to.metadata().unwrap());
            assert!(to.blocks() <= from.blocks().max(8), "{} {}", from.blocks(), to.blocks());
            assert!(allocated(&to) <= 4 * 4096, "{len}");
        }
    }
}
