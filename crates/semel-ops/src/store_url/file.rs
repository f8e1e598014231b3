//! `file:FOLDER`, a store on this machine's disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{StatFs, statfs};
use semel::store::{Finding, Store, Verdict};
use semel::{Error, ErrorKind, Result};
use semel_file::FileStore;

use super::opened::{Opened, OperatedStore, Pending};
use super::probe;
use crate::lookup::Counted;

/// The file that every store has, from its first moment on.
const MARK: &str = "semel.store";
/// How the names of a store's segments end.
const SEGMENT: &str = ".log";
/// What the finding about the file system is called.
const FILE_SYSTEM: &str = "file system";
/// The largest segment of a store with default settings.
const SEGMENT_BYTES: u64 = 64 << 20;
/// The room of two segments: one to write, and one in reserve.
const ROOM_BYTES: u64 = 2 * SEGMENT_BYTES;

struct Folder {
    path: PathBuf,
    store: Arc<FileStore>,
}

impl OperatedStore for Folder {
    fn survives(&self) -> String {
        let file_system = statfs(&self.path).map(|stat| named(stat.f_type));
        match file_system {
            Ok((found, Verdict::Broken)) => format!("kill -9 and nothing else for certain, on {found}"),
            _ => "kill -9, a crash of the machine, and loss of power".to_owned(),
        }
    }

    fn check(&self) -> Pending<'_, Vec<Finding>> {
        Box::pin(std::future::ready(check(&self.path)))
    }

    /// Room comes and goes, and nothing is lost for want of it: it is a matter of readiness.
    fn is_setting(&self, finding: &Finding) -> bool {
        &*finding.setting == FILE_SYSTEM
    }

    /// A store that has stopped refuses the load. Where the disk may have no room for the next segment, a record is
    /// written, because only the store knows whether it refuses new ones.
    fn ready<'a>(&'a self, store: &'a Arc<dyn Store>) -> Pending<'a, ()> {
        Box::pin(async {
            probe::load(store).await?;
            let is_low = free_bytes(&stat_of(&self.path)?) < SEGMENT_BYTES;
            if is_low { probe::write(store).await } else { Ok(()) }
        })
    }

    fn count(&self) -> Option<u64> {
        Some(self.store.records() as u64)
    }

    fn count_all(&self, oldest_max: usize) -> Option<Pending<'_, Counted>> {
        let store = Arc::clone(&self.store);
        let counted = tokio::task::spawn_blocking(move || count_all(&store, oldest_max));
        Some(Box::pin(async { counted.await.map_err(panicked)? }))
    }
}

/// Reads from front to back, which is many times faster than in the order of ids.
fn count_all(store: &FileStore, oldest_max: usize) -> Result<Counted> {
    let counted = Mutex::new(Counted::default());
    store.visit(|visited| {
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.damaged = counted.damaged.saturating_add(visited.damaged as u64);
        counted.add_all(&visited.records, visited.now, oldest_max);
        counted.as_of = counted.as_of.max(Some(visited.now));
    })?;
    Ok(counted.into_inner().unwrap_or_else(PoisonError::into_inner))
}

#[cold]
fn panicked(error: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Unknown, "counting the records ended in a panic; try again").caused_by(error)
}

pub(super) fn open(folder: &Path) -> Result<Opened> {
    let store = Arc::new(FileStore::open(folder)?);
    Ok(Opened::new(Arc::clone(&store) as _, Folder { path: folder.to_path_buf(), store }))
}

/// A mistyped folder must not become an empty store.
pub(super) fn open_existing(folder: &Path) -> Result<Opened> {
    let shown = folder.display();
    let what = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => "is not there".to_owned(),
        Err(error) => format!("cannot be read: {error}"),
        Ok(mut names) => {
            // A store that lost its mark is for `open` to speak of, which knows what to do.
            let is_ours = |name: &str| name == MARK || name.ends_with(SEGMENT);
            if names.any(|name| name.is_ok_and(|name| name.file_name().to_str().is_some_and(is_ours))) {
                return open(folder);
            }
            "holds no store".to_owned()
        }
    };
    Err(Error::new(ErrorKind::Invalid, format!("the folder {shown} {what}")))
}

/// What the promise of a folder depends on: the file system under it, and room.
fn check(folder: &Path) -> Result<Vec<Finding>> {
    let stat = stat_of(folder)?;
    Ok(vec![file_system(&stat), room(&stat)])
}

fn stat_of(folder: &Path) -> Result<StatFs> {
    statfs(folder).map_err(|error| {
        let message =
            format!("{}: cannot look at its file system: {error}; check its rights", folder.display());
        Error::new(ErrorKind::Unavailable, message).caused_by(error)
    })
}

fn free_bytes(stat: &StatFs) -> u64 {
    stat.f_bavail.saturating_mul(u64::try_from(stat.f_bsize).unwrap_or(0))
}

fn file_system(stat: &StatFs) -> Finding {
    let (found, verdict) = named(stat.f_type);
    Finding {
        setting: FILE_SYSTEM.into(),
        found: Some(found.into()),
        wanted: "a local disk that keeps what it has synced".into(),
        verdict,
    }
}

/// The file systems that matter, by the number that `statfs` gives them.
fn named(number: i64) -> (String, Verdict) {
    let (name, verdict) = match number {
        0xef53 => ("ext4", Verdict::Kept),
        0x5846_5342 => ("xfs", Verdict::Kept),
        0x9123_683e => ("btrfs", Verdict::Kept),
        0x2fc1_2fc1 => ("zfs", Verdict::Kept),
        0xf2f5_2010 => ("f2fs", Verdict::Kept),
        0x0102_1994 => ("tmpfs: gone when the machine stops", Verdict::Broken),
        0x8584_58f6 => ("ramfs: gone when the machine stops", Verdict::Broken),
        0x6969 => ("nfs: its locks and syncs are not those of a local disk", Verdict::Broken),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => {
            ("smb: its locks and syncs are not those of a local disk", Verdict::Broken)
        }
        0x794c_7630 => ("overlay: what is below it decides", Verdict::Unreadable),
        0x6573_5546 => ("fuse: what is behind it decides", Verdict::Unreadable),
        other => return (format!("one that is not known here ({other:#x})"), Verdict::Unreadable),
    };
    (name.to_owned(), verdict)
}

fn room(stat: &StatFs) -> Finding {
    let free = free_bytes(stat);
    Finding {
        setting: "room on the disk".into(),
        found: Some(format!("{} MiB", free >> 20).into()),
        wanted: format!("{} MiB or more, or new claims are refused", ROOM_BYTES >> 20).into(),
        verdict: if free >= ROOM_BYTES { Verdict::Kept } else { Verdict::Broken },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use semel::machine::claim::Ask;
    use semel::record::Keep;
    use semel::store::Swap;
    use semel::{Claim, Decision, Fingerprint, Key, Lapse, Outcome, Semel};
    use semel_testkit::ManualClock;
    use semel_testkit::sample::{LONG, ask, done};

    use super::*;

    #[test]
    fn a_folder_that_is_no_store_is_not_made_one() {
        let place = tempfile::tempdir().expect("a folder for a test");
        let missing = place.path().join("typo");
        let error = open_existing(&missing).err().expect("is refused").to_string();
        assert!(error.ends_with("is not there") && !missing.exists(), "{error}");
        let error = open_existing(place.path()).err().expect("is refused").to_string();
        assert!(error.ends_with("holds no store"), "{error}");
        let made = place.path().join("store");
        drop(open(&made).expect("is made"));
        assert_eq!(open_existing(&made).expect("is there").count(), Some(0));
    }

    /// The same store without a way of its own to count.
    struct Walked;

    impl OperatedStore for Walked {
        fn survives(&self) -> String {
            "a test".to_owned()
        }
    }

    fn key(name: &str) -> Key {
        Key::scoped(["shop"], "charge", name).expect("is a key")
    }

    /// A store with records in every state, duplicates, mismatches, lapsed leases, some that are past their time, and some
    /// that cannot be read.
    async fn every_kind_of_record(folder: &Path) -> Arc<FileStore> {
        let clock = ManualClock::at(1_000_000_000_000);
        let store = FileStore::builder(folder).clock(clock.clone()).segment_bytes(64 << 10).inline();
        let store = Arc::new(store.open().expect("is made"));
        let semel = Semel::builder_shared(store.clone()).no_sweep().build().expect("is an engine");
        for number in 0..400 {
            let lapse = if number % 3 == 0 { Lapse::Hold } else { Lapse::Rerun };
            let lease = Duration::from_secs(if number % 2 == 0 { 10 } else { 600 });
            let claim = |request: &str| {
                let fingerprint = Fingerprint::of(request).expect("is JSON");
                let claim =
                    Claim::new(&key(&format!("order-{number}"))).retention(LONG).fingerprint(fingerprint);
                claim.lapse(lapse).lease(lease)
            };
            let Ok(Decision::Run(permit)) = semel.claim(claim("one")).await else { panic!("it is new") };
            drop(semel.claim(claim("one")).await);
            drop(semel.claim(claim("another")).await);
            match number % 5 {
                0 => drop(permit.complete(Outcome::success(vec![7; 90])).await),
                1 => drop(permit.release("try again").await),
                2 => drop(permit.hold("ask the bank").await),
                _ => drop(permit),
            }
        }
        for number in 0..50 {
            let ask = Ask { retention: Duration::from_secs(20), ..ask(&key(&format!("past-{number}"))) };
            let write = done(&ask, &Outcome::success("past")).expect("is new");
            // The store keeps them for longer than they count.
            let keep = if number % 2 == 0 { Keep::Forever } else { write.keep };
            drop(store.swap([Swap { expected: None, next: write.next, keep }].into()).await);
        }
        semel.close().await.expect("is closed");
        clock.advance(Duration::from_secs(25));
        store
    }

    /// Damages a frame in the middle of the oldest segment, and everything behind a place of the next.
    fn damage(folder: &Path) {
        let names =
            std::fs::read_dir(folder).expect("is a folder").map(|entry| entry.expect("is a file").path());
        let mut segments: Vec<_> =
            names.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
        segments.sort();
        for (path, (from, bytes)) in segments.iter().zip([(9_000, 1), (40_000, 25_000)]) {
            let mut content = std::fs::read(path).expect("is a segment");
            content.iter_mut().skip(from).take(bytes).for_each(|byte| *byte ^= 0x55);
            std::fs::write(path, content).expect("is written");
        }
    }

    #[tokio::test]
    async fn counting_from_front_to_back_counts_what_a_walk_counts() {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let store = every_kind_of_record(folder.path()).await;
        let walked = Opened::new(store.clone(), Walked);
        let operated = Folder { path: folder.path().to_path_buf(), store: store.clone() };
        let visited = Opened::new(store, operated);
        for is_damaged in [false, true] {
            if is_damaged {
                damage(folder.path());
            }
            let expected = walked.count_all(3, |_, _| {}).await.expect("is counted");
            let counted = visited.count_all(3, |_, _| {}).await.expect("is counted");
            assert_eq!(format!("{counted:?}"), format!("{expected:?}"));
            let Counted { running, done, released, held, lapsed, duplicates, mismatches, .. } = counted;
            let all = [running, done, released, held, lapsed, duplicates, mismatches];
            assert!(all.iter().all(|count| *count > 0), "{counted:?}");
            assert_eq!(counted.damaged > 5, is_damaged, "{}", counted.damaged);
            assert!((1..=25).contains(&counted.past), "{counted:?}");
        }
    }

    #[tokio::test]
    async fn a_file_system_that_forgets_is_a_broken_setting_of_an_opened_store() {
        let folder = tempfile::tempdir_in("/dev/shm").expect("Linux has a file system in memory");
        let opened = open(folder.path()).expect("is made");
        assert!(opened.broken_settings().is_empty(), "nothing is checked yet");
        opened.check().await.expect("is checked");
        let broken = opened.broken_settings();
        assert!(matches!(&*broken, [finding] if &*finding.setting == FILE_SYSTEM), "{broken:?}");
        assert!(opened.survives().starts_with("kill -9 and nothing else"), "{}", opened.survives());
        opened.ready().await.expect("takes claims all the same");
    }

    #[test]
    fn a_file_system_that_forgets_breaks_the_promise() {
        assert_eq!(named(0x0102_1994).1, Verdict::Broken);
        assert_eq!(named(0xef53).1, Verdict::Kept);
        assert_eq!(named(7).1, Verdict::Unreadable);
    }

    #[test]
    fn room_for_two_segments_is_wanted() {
        let place = tempfile::tempdir().expect("a folder for a test");
        let mut stat = statfs(place.path()).expect("is a file system");
        stat.f_bavail = 0;
        assert_eq!(room(&stat).verdict, Verdict::Broken);
        let store = Arc::new(FileStore::open(place.path()).expect("is made"));
        let folder = Folder { path: place.path().to_path_buf(), store };
        assert!(!folder.is_setting(&room(&stat)) && folder.is_setting(&file_system(&stat)));
        stat.f_bavail = u64::MAX;
        assert_eq!(room(&stat).verdict, Verdict::Kept);
    }
}
