//! A folder and a port of one server's own.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rand::RngExt;

use crate::user::User;

/// Below the ports that systems give to outgoing connections: while a server is down, no client may get its port, not
/// even by connecting to itself.
const PORTS: Range<u16> = 21_000..26_500;
/// Of servers whose folder is in memory: their folders are elsewhere, and must not bear the same numbers.
const MEMORY_PORTS: Range<u16> = 26_500..32_000;
/// The nodes of a cluster also listen 10,000 above their port.
const CLUSTER_PORTS: Range<u16> = 11_000..21_000;
const CLUSTER_BUS: u16 = 10_000;
/// Where Linux has a file system in memory.
const MEMORY: &str = "/dev/shm";
/// How many ports are tried before something else must be wrong.
const TRIES: u32 = 200;

/// Where one server lives.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    pub(crate) user: User,
}

impl Place {
    /// For a server with one port.
    pub(crate) fn take() -> Result<Self> {
        Self::take_among(&std::env::temp_dir(), PORTS, is_free)
    }

    /// For a server whose files need not be on a disk. Without a file system in memory they are all the same.
    pub(crate) fn take_in_memory() -> Result<Self> {
        let memory = Path::new(MEMORY);
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        Self::take_among(&parent, MEMORY_PORTS, is_free)
    }

    /// For a node of a cluster, which has a [second port](Self::second_port).
    pub(crate) fn take_for_cluster() -> Result<Self> {
        let is_free = |port: u16| is_free(port) && port.checked_add(CLUSTER_BUS).is_some_and(is_free);
        Self::take_among(&std::env::temp_dir(), CLUSTER_PORTS, is_free)
    }

    /// The folder bears the port's number: whoever makes it has both, also among processes that look at the same time.
    fn take_among(parent: &Path, ports: Range<u16>, is_free: impl Fn(u16) -> bool) -> Result<Self> {
        let user = User::unprivileged()?;
        for _ in 0..TRIES {
            let port = rand::rng().random_range(ports.clone());
            let folder = parent.join(format!("semel-server-{port}"));
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) if is_free(port) => {
                    user.own(&folder)?;
                    return Ok(Self { folder, port, user });
                }
                Ok(()) => fs::remove_dir(&folder)?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("cannot make {}", folder.display())),
            }
        }
        bail!("no free port in {TRIES} tries")
    }

    /// The other port of a node of a cluster: where its peers find it.
    pub(crate) fn second_port(&self) -> u16 {
        self.port.saturating_add(CLUSTER_BUS)
    }

    /// A file in the folder, for the server to read.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        self.user.own(&path)?;
        Ok(path)
    }

    /// Where the server says how it is.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// The end of what the server said.
    pub(crate) fn last_words(&self) -> String {
        const LINES: usize = 15;
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n")
    }

    /// Whether the server ended because somebody else took its port. Erlang has its own word for it.
    pub(crate) fn lost_its_port(&self) -> bool {
        let words = self.last_words();
        words.contains("ddress already in use") || words.contains("eaddrinuse")
    }

    /// How much the server has said so far, for [`has_said`](Self::has_said).
    pub(crate) fn log_bytes(&self) -> usize {
        fs::metadata(self.log()).map_or(0, |log| usize::try_from(log.len()).unwrap_or(usize::MAX))
    }

    /// Whether the server has said these words after its first `log_bytes`: since it was started, and not before it was killed.
    pub(crate) fn has_said(&self, words: &str, log_bytes: usize) -> bool {
        let log = fs::read(self.log()).unwrap_or_default();
        String::from_utf8_lossy(log.get(log_bytes..).unwrap_or_default()).contains(words)
    }
}

/// Where a program of this name is: on the path, or where servers are that only root is expected to start.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|path| is_program(path))
}

/// Whether this program can be run: a path, or a name to be looked for.
pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_belongs_to_whoever_made_its_folder() {
        let place = Place::take().unwrap();
        let temp = std::env::temp_dir();
        let again = Place::take_among(&temp, place.port..place.port.saturating_add(1), |_| true).unwrap_err();
        assert!(again.to_string().contains("no free port"), "{again}");
        fs::remove_dir(&place.folder).unwrap();
        let port = place.port;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(Place::take_among(&temp, port..port.saturating_add(1), is_free).is_err());
        drop(listener);
        let place = Place::take_among(&temp, port..port.saturating_add(1), is_free).unwrap();
        fs::remove_dir(&place.folder).unwrap();
    }
}
