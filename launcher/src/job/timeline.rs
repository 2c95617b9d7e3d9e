//! Timelines of the ranks of this host (`--trace`): each rank writes one, and at the end they become one file.

use oflow::context::trace_file_name;
use oflow::control::{TRACE_MIB_VARIABLE, TRACE_STEPS_VARIABLE, TRACE_VARIABLE};
use oflow_files::Access;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::Failed;
use crate::timeline::Packets;

/// The ways to see a timeline.
const VIEWERS: &str = "open it in https://ui.perfetto.dev; `oflow timeline` draws steps of it";

/// Timelines that the user has asked for.
#[derive(Clone, Debug)]
pub struct Timelines {
    folder: PathBuf,
    /// Steps, as the ranks read them.
    steps: Option<String>,
    mib: Option<u32>,
}

impl Timelines {
    /// Timelines in a folder, which need not be there.
    pub fn new(folder: &Path, steps: Option<String>, mib: Option<u32>) -> Result<Timelines, Failed> {
        // Programs may change their folder.
        let folder = std::path::absolute(folder).map_err(|e| Failed::new(format!("{}: {e}", folder.display())))?;
        Ok(Timelines { folder, steps, mib })
    }

    /// Makes the folder.
    pub fn make_folder(&self) -> Result<(), Failed> {
        oflow_files::folders(&self.folder, Access::Readable).map_err(|e| Failed::new(e.to_string()))
    }

    /// Variables of the environment of a rank.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let folder = (TRACE_VARIABLE, self.folder.clone().into_os_string());
        let steps = self.steps.clone().map(|s| (TRACE_STEPS_VARIABLE, s.into()));
        let mib = self.mib.map(|n| (TRACE_MIB_VARIABLE, n.to_string().into()));
        std::iter::once(folder).chain(steps).chain(mib)
    }

    /// Joins the files of these ranks to one, and says where it is. `restarts` counts those of the job.
    pub fn finish(&self, node: usize, ranks: std::ops::Range<usize>, restarts: u32) -> String {
        let name = if node == 0 { "job.pftrace".to_string() } else { format!("node-{node}.pftrace") };
        let to = self.folder.join(name);
        let parts: Vec<PathBuf> = ranks
            .flat_map(|rank| (0..=restarts).map(move |start| trace_file_name(rank, start)))
            .map(|name| self.folder.join(name))
            .filter(|path| path.is_file())
            .collect();
        if parts.is_empty() {
            return format!(
                "no rank has written a timeline to {}: none has called oflow::init()",
                self.folder.display()
            );
        }
        match join(&parts, &to) {
            Ok(0) => format!("timeline: {} ({VIEWERS})", to.display()),
            Ok(cut) => format!(
                "timeline: {} ({VIEWERS}); {cut} ranks were killed while they wrote: their last events are missing",
                to.display()
            ),
            Err(e) => format!("timeline: the files in {} could not be joined: {e}", self.folder.display()),
        }
    }
}

/// Writes the packets of files one after the other and removes the files. Returns how many ended within a packet.
fn join(parts: &[PathBuf], to: &Path) -> io::Result<usize> {
    let other = |e: oflow::Error| io::Error::other(e.to_string());
    oflow_files::replace(to, Access::Readable, b"").map_err(other)?;
    let mut file = oflow_files::append(to, Access::Readable).map_err(other)?;
    let mut cut = 0;
    for part in parts {
        let mut packets = Packets::new(io::BufReader::new(File::open(part)?));
        while packets.next()?.is_some() {}
        let whole = packets.whole();
        let mut from = File::open(part)?.take(whole);
        cut += usize::from(whole < part.metadata()?.len());
        io::copy(&mut from, &mut file)?;
    }
    file.flush()?;
    for part in parts {
        std::fs::remove_file(part)?;
    }
    Ok(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_joined_packet_by_packet() {
        let dir = tempfile::tempdir().unwrap();
        let packet = |n: usize, byte: u8| {
            let mut all = vec![0x0a];
            let mut length = n;
            while length >= 0x80 {
                all.push(length as u8 | 0x80);
                length >>= 7;
            }
            all.push(length as u8);
            all.extend(vec![byte; n]);
            all
        };
        let (a, b) = ([packet(3, 1), packet(300, 2)].concat(), packet(0, 0));
        let mut killed = packet(20_000, 3);
        killed.truncate(19_000);
        oflow_files::replace(&dir.path().join("rank-2.pftrace"), Access::Readable, &[a.clone(), killed].concat())
            .unwrap();
        oflow_files::replace(&dir.path().join("rank-2-restart-1.pftrace"), Access::Readable, &b).unwrap();
        // Of another rank, and of an earlier job.
        oflow_files::replace(&dir.path().join("rank-9.pftrace"), Access::Readable, &b).unwrap();
        oflow_files::replace(&dir.path().join("job.pftrace"), Access::Readable, b"old").unwrap();
        let timelines = Timelines::new(dir.path(), None, None).unwrap();
        let said = timelines.finish(0, 2..4, 1);
        assert!(said.contains("steps of it); 1 ranks were killed"), "{said}");
        assert_eq!(std::fs::read(dir.path().join("job.pftrace")).unwrap(), [a, b].concat());
        assert!(!dir.path().join("rank-2.pftrace").exists() && dir.path().join("rank-9.pftrace").exists());
        let said = timelines.finish(1, 4..5, 0);
        assert!(said.starts_with("no rank has written a timeline to"), "{said}");
    }
}
