//! The private folder in which the ranks of a host meet: its access rights, its sockets, and how stale sockets are removed.
//!
//! A socket is made under another name, listens, and is then renamed, so it appears in one step. A socket that refuses
//! connections therefore has no owner any more, for example after `kill -9`, and the next process removes it. A process that
//! changes names in the folder holds the folder's lock.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, getpid, getuid, test_kill_process};

use oflow_base::{Error, Result};
use oflow_files::lock::wait_for;
use oflow_files::make::{not_private, private_folder};

/// Longest path of a Unix socket, with the end of the text.
const LONGEST: usize = 107;
const SOCKET: &str = ".socket";

pub(super) struct Folder(PathBuf);

/// A listening socket; its name goes when this is dropped.
pub(super) struct Door {
    pub(super) listener: UnixListener,
    path: PathBuf,
}

impl Drop for Door {
    fn drop(&mut self) {
        // The name is ours as long as we listen: others leave one alone that takes connections. Somebody may have removed it by
        // hand; then there is nothing left to do.
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// The folder is ours alone until this is dropped. A process that dies gives it back.
struct Alone(#[allow(dead_code)] File);

impl Folder {
    /// The folder of this user, made if need be.
    pub(super) fn open() -> Result<Folder> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute());
        if let Some(folder) = runtime.filter(|p| not_private(p).is_none()).map(|p| p.join("oflow"))
            && folder.as_os_str().len() + 64 < LONGEST
        {
            return Folder::at(folder);
        }
        Folder::at(PathBuf::from(format!("/tmp/oflow-{}", getuid().as_raw())))
    }

    /// The folder of that path.
    pub(super) fn at(path: PathBuf) -> Result<Folder> {
        private_folder(&path).map_err(|e| {
            let what = format!("ranks of this host cannot meet: {}", e.message());
            Error::io(what).help("remove it, or name another place in XDG_RUNTIME_DIR")
        })?;
        let folder = Folder(path);
        folder.sweep();
        Ok(folder)
    }

    /// Waits until no other process changes names here.
    fn alone(&self) -> Result<Alone> {
        let failed = |e: io::Error| Error::io(format!("cannot lock {}", self.0.display())).because(e);
        let folder = File::open(&self.0).map_err(failed)?;
        let tell =
            |_: &str| eprintln!("oflow: another process of this user has locked {}; waiting for it", self.0.display());
        wait_for(&folder, tell).map_err(failed)?;
        Ok(Alone(folder))
    }

    /// Where the ranks of a job meet.
    pub(super) fn path(&self, job: &str) -> PathBuf {
        self.0.join(format!("{job}{SOCKET}"))
    }

    /// Listens for the ranks of a job. `None`: another process does.
    pub(super) fn listen(&self, job: &str) -> Result<Option<Door>> {
        use ErrorKind::{ConnectionRefused, NotFound};
        let path = self.path(job);
        let _alone = self.alone()?;
        // Only a name that nobody listens at may be taken: one whose queue is full has an owner.
        if !matches!(try_connect(&path), Err(e) if matches!(e.kind(), NotFound | ConnectionRefused)) {
            return Ok(None);
        }
        let failed = |e: io::Error| Error::io(format!("cannot listen at {}", path.display())).because(e);
        let made = self.0.join(format!("{}.new", getpid().as_raw_nonzero()));
        let _left_by_a_namesake = std::fs::remove_file(&made);
        let listener = UnixListener::bind(&made).map_err(failed)?;
        std::fs::rename(&made, &path).map_err(failed)?;
        Ok(Some(Door { listener, path }))
    }

    /// Connects to the first rank of a job. `None`: it does not listen, or its queue is full.
    pub(super) fn connect(&self, job: &str) -> Result<Option<UnixStream>> {
        use ErrorKind::{ConnectionRefused, NotFound, WouldBlock};
        let failed = |e: io::Error| Error::io(format!("cannot connect to {}", self.path(job).display())).because(e);
        match try_connect(&self.path(job)) {
            Ok(stream) => {
                own(&stream)?;
                stream.set_nonblocking(false).map_err(failed)?;
                Ok(Some(stream))
            }
            Err(e) if matches!(e.kind(), NotFound | ConnectionRefused | WouldBlock) => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }

    /// Removes what killed processes have left.
    fn sweep(&self) {
        // Without the lock, as where the file system has none, the names stay.
        let Ok(_alone) = self.alone() else { return };
        let Ok(entries) = std::fs::read_dir(&self.0) else { return };
        for path in entries.filter_map(|e| Some(e.ok()?.path())) {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let stale = if let Some(pid) = name.strip_suffix(".new") {
                let pid = pid.parse().ok().and_then(Pid::from_raw);
                pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
            } else {
                name.ends_with(SOCKET) && try_connect(&path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
            };
            if stale {
                // Another rank may have been quicker.
                let _gone = std::fs::remove_file(&path);
            }
        }
    }
}

/// A connection that does not block. Who listens but has a full queue, because it is stopped or very busy, is
/// [`ErrorKind::WouldBlock`]: nobody may wait for it while holding the lock, or the user's other jobs would wait too.
fn try_connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Whether the other end runs under our own user; its process.
pub(super) fn own(stream: &UnixStream) -> Result<i32> {
    let peer = socket_peercred(stream).map_err(|e| Error::comm("cannot tell who has connected").because(e))?;
    if peer.uid != getuid() {
        return Err(Error::comm(format!(
            "process {} of user {} is at the other end of a connection between ranks, but this is user {}",
            peer.pid,
            peer.uid.as_raw(),
            getuid().as_raw()
        )));
    }
    Ok(peer.pid.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    struct Temporary(PathBuf);
    impl Temporary {
        fn new(name: &str) -> Temporary {
            let path = std::env::temp_dir().join(format!("oflow-folder-{}-{name}", std::process::id()));
            Temporary(path)
        }
    }
    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn only_a_private_folder_is_used() {
        let place = Temporary::new("private");
        let why = || Folder::at(place.0.clone()).err().unwrap().to_string();
        std::fs::create_dir(&place.0).unwrap();
        std::fs::set_permissions(&place.0, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(why().contains("is open to other users (mode 755)"), "{}", why());
        std::fs::remove_dir(&place.0).unwrap();
        std::os::unix::fs::symlink("/tmp", &place.0).unwrap();
        assert!(why().contains("is not a folder"), "{}", why());
        std::fs::remove_file(&place.0).unwrap();
        Folder::at(place.0.clone()).unwrap();
        assert_eq!(std::fs::metadata(&place.0).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_door_is_there_once_and_goes() {
        let place = Temporary::new("door");
        let folder = Folder::at(place.0.clone()).unwrap();
        assert!(folder.connect("job").unwrap().is_none());
        let door = folder.listen("job").unwrap().unwrap();
        assert!(folder.listen("job").unwrap().is_none(), "two listeners of one job");
        assert!(folder.listen("other").unwrap().is_some());
        let stream = folder.connect("job").unwrap().unwrap();
        assert_eq!(own(&stream).unwrap(), std::process::id() as i32);
        drop(door);
        assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 0);
    }

    #[test]
    fn of_many_that_come_at_once_one_is_first() {
        let place = Temporary::new("first");
        for round in 0..20 {
            let folder = Folder::at(place.0.clone()).unwrap();
            // As after kill -9: all see a name that nobody listens at, and want to take its place.
            drop(UnixListener::bind(folder.path("job")).unwrap());
            let start = std::sync::Barrier::new(8);
            let doors: Vec<Option<Door>> = std::thread::scope(|s| {
                let all: Vec<_> = (0..8)
                    .map(|_| {
                        s.spawn(|| {
                            start.wait();
                            Folder::at(place.0.clone()).unwrap().listen("job").unwrap()
                        })
                    })
                    .collect();
                all.into_iter().map(|t| t.join().unwrap()).collect()
            });
            assert_eq!(doors.iter().flatten().count(), 1, "round {round}");
            assert!(folder.connect("job").unwrap().is_some());
            drop(doors);
            assert!(!folder.path("job").exists());
        }
    }

    #[test]
    fn nobody_waits_for_one_that_takes_no_connections() {
        let place = Temporary::new("full");
        let folder = Folder::at(place.0.clone()).unwrap();
        // As a first rank that is stopped.
        let full = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&full, &SocketAddrUnix::new(folder.path("full")).unwrap()).unwrap();
        rustix::net::listen(&full, 0).unwrap();
        let mut queue = vec![];
        while let Some(stream) = folder.connect("full").unwrap() {
            queue.push(stream);
        }
        assert!(!queue.is_empty());
        assert!(folder.listen("full").unwrap().is_none(), "it has an owner");
        assert!(Folder::at(place.0.clone()).unwrap().listen("other").unwrap().is_some());
        assert!(folder.path("full").exists());
    }

    #[test]
    fn what_the_dead_have_left_is_removed() {
        let place = Temporary::new("stale");
        let folder = Folder::at(place.0.clone()).unwrap();
        // As after kill -9: the name stays, nobody listens.
        drop(UnixListener::bind(folder.path("dead")).unwrap());
        drop(UnixListener::bind(place.0.join("999999999.new")).unwrap());
        let live = folder.listen("live").unwrap().unwrap();
        assert!(folder.listen("dead").unwrap().is_some());
        drop(UnixListener::bind(folder.path("dead")).unwrap());
        Folder::at(place.0.clone()).unwrap();
        let left: Vec<_> = std::fs::read_dir(&place.0).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["live.socket"]);
        drop(live);
    }
}
