//! What a new file takes over from the one whose place it takes.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Gives the new file the owner, the group and the extended attributes of the old one, access lists among them.
#[cfg(unix)]
pub(super) fn inherit(path: &Path, old: &Metadata, new: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let made = new.metadata()?;
    let other = |old: u32, made: u32| (old != made).then_some(old);
    let (owner, group) = (other(old.uid(), made.uid()), other(old.gid(), made.gid()));
    if owner.is_some() || group.is_some() {
        std::os::unix::fs::fchown(new, owner, group)?;
    }
    #[cfg(target_os = "linux")]
    inherit_attributes(path, new)?;
    #[cfg(not(target_os = "linux"))]
    let _ = path;
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn inherit(_path: &Path, _old: &Metadata, _new: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn inherit_attributes(path: &Path, new: &File) -> io::Result<()> {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr, getxattr, listxattr};
    use rustix::io::Errno;
    /// Speaks of the old bytes.
    const OF_CONTENT: &[&str] = &["security.capability", "security.ima", "security.evm"];
    fn grown(read: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; 1 << 16];
        match read(&mut bytes) {
            Ok(len) => {
                bytes.truncate(len);
                Ok(Some(bytes))
            }
            Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
    let names = |list: Option<Vec<u8>>| -> Vec<String> {
        let list = String::from_utf8_lossy(&list.unwrap_or_default()).into_owned();
        let names = list.split('\0').filter(|name| !name.is_empty() && !OF_CONTENT.contains(name));
        names.map(str::to_owned).collect()
    };
    let wanted = names(grown(|bytes| listxattr(path, bytes))?);
    for name in names(grown(|bytes| flistxattr(new, bytes))?) {
        // A folder may give an access list to what is made in it.
        if !wanted.contains(&name) && name.starts_with("system.") {
            fremovexattr(new, name.as_str())?;
        }
    }
    for name in &wanted {
        let value = grown(|bytes| getxattr(path, name.as_str(), bytes))?;
        if let Some(value) = value
            .filter(|value| grown(|bytes| fgetxattr(new, name.as_str(), bytes)).ok().flatten().as_ref() != Some(value))
        {
            fsetxattr(new, name.as_str(), &value, XattrFlags::empty())?;
        }
    }
    Ok(())
}
