//! A file put in its place whole, or not at all.

use std::io;

use super::world::{Found, World};

/// The folder of a path, and the name of the file that is written before it takes the path's place. It begins with a point, which
/// systemd passes over, and does not end in `.conf`, which procps wants.
pub(super) fn beside(path: &str) -> (&str, String) {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    (if folder.is_empty() { "/" } else { folder }, format!("{folder}/.{name}.linerate"))
}

/// Writes all bytes.
pub(super) fn write_all<W: World>(world: &mut W, file: &mut W::File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match world.write(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Puts a file in its place. Where that fails, what was there before still is.
pub(super) fn put<W: World>(world: &mut W, path: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (folder, partial) = beside(path);
    clear(world, path)?;
    let put = (|| {
        let mut file = world.create(&partial, mode)?;
        write_all(world, &mut file, bytes)?;
        world.sync(&mut file)?;
        world.rename(&partial, path)
    })();
    if let Err(error) = put {
        // Where even that fails, the next one clears it away.
        let _ = world.remove(&partial);
        return Err(error);
    }
    world.sync_folder(folder)
}

/// Removes a file or a link, which may be gone already.
pub(super) fn remove<W: World>(world: &mut W, path: &str) -> io::Result<()> {
    match world.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => world.sync_folder(beside(path).0),
    }
}

/// Removes what a run that was killed had not put in its place.
pub(super) fn clear<W: World>(world: &mut W, path: &str) -> io::Result<()> {
    let (_, partial) = beside(path);
    match world.look(&partial)? {
        Found::Nothing => Ok(()),
        _ => world.remove(&partial),
    }
}
