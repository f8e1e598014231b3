//! Lines as a source.

use std::fmt;
use std::fmt::Write;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use semel::machine::offset::Position;
use semel::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};
use tokio::io::AsyncRead;

use super::lines::{Input, Line, Lines};
use super::place::Place;
use crate::event::Event;
use crate::source::spi::Outstanding;
use crate::source::{Delivery, Fetched, Pending, Reads, Source, Tag};

/// How long a line may be, unless the source says otherwise: 16 MiB.
pub const LINE_BYTES_MAX_DEFAULT: usize = 16 * 1024 * 1024;
/// How long to wait at the end of a file before it is looked at again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// How much of the digest is in an id.
const DIGEST_BYTES: usize = 8;

/// A file of JSON lines, or what comes in on standard input; one event a line, empty lines left out.
///
/// A *file* has one reader at a time, and is read on from where it was left. The position of a line is the byte behind it,
/// so that the place is found without reading what is before it; its id is the file's name and that position. A file under
/// one name may only grow: one that became shorter, or is replaced while it is [followed](Self::follow), is refused, and
/// so is one in which no line ends where the last one ended. Give each file that is begun anew a name of its own.
///
/// *Standard input* has no name that means the same tomorrow, so it has no positions: it is read from its start every
/// time, and what has a receipt is passed over. The id of a line is its number and a digest of everything up to its end:
/// the same input again gives the same ids, and another input never does.
///
/// Nobody keeps what was not acknowledged but the input itself: what is given back is handed out again by this source.
pub struct LinesSource {
    stream: Arc<str>,
    origin: Origin,
    follow: bool,
    line_bytes_max: usize,
    outstanding: Outstanding,
}

/// Where the lines are.
enum Origin {
    File { place: Place, announced: bool, lines: Option<Lines> },
    Input { lines: Lines, digest: Sha256 },
}

impl LinesSource {
    /// A file. Its name as given is the stream's. What is no regular file (a pipe, a terminal) is read as
    /// [an input](Self::input) is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let unread = |error: std::io::Error| {
            let message = format!("cannot read `{}`: {error}; name a file that is there", path.display());
            Error::new(ErrorKind::Invalid, message)
        };
        let stream = path.to_string_lossy();
        let file = File::open(path).map_err(unread)?;
        let metadata = file.metadata().map_err(unread)?;
        if metadata.is_dir() {
            return Err(unread(std::io::ErrorKind::IsADirectory.into()));
        }
        if !metadata.is_file() {
            return Ok(Self::input(&stream, tokio::fs::File::from_std(file)));
        }
        Ok(Self::new(&stream, Origin::File { place: Place::new(path), announced: false, lines: None }))
    }

    /// Standard input, as the stream `stdin`.
    pub fn stdin() -> Self {
        Self::input("stdin", tokio::io::stdin())
    }

    /// Whatever can be read, under this name. It is read once, from its start to its end.
    pub fn input(stream: &str, input: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let input: Input = Box::new(input);
        let lines = Lines::new(stream, input, 0, LINE_BYTES_MAX_DEFAULT);
        Self::new(stream, Origin::Input { lines, digest: Sha256::new() })
    }

    fn new(stream: &str, origin: Origin) -> Self {
        let outstanding = Outstanding::default();
        let line_bytes_max = LINE_BYTES_MAX_DEFAULT;
        Self { stream: stream.into(), origin, follow: false, line_bytes_max, outstanding }
    }

    /// Whether to wait for more at the end of a file. Then a line counts once its end is there. An input ends when its
    /// writer ends it, with or without this.
    #[must_use]
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    /// How long a line may be; a longer one is an error.
    #[must_use]
    pub fn line_bytes_max(mut self, bytes: usize) -> Self {
        self.line_bytes_max = bytes;
        if let Origin::Input { lines, .. } = &mut self.origin {
            lines.set_line_bytes_max(bytes);
        }
        self
    }

    async fn news(&mut self, most: usize) -> Result<Fetched> {
        if let Origin::File { announced: announced @ false, .. } = &mut self.origin {
            *announced = true;
            return Ok(Fetched::Assigned(vec![Arc::clone(&self.stream)]));
        }
        let most = most.max(1);
        loop {
            let mut deliveries = self.outstanding.due(most);
            self.take_read(&mut deliveries, most)?;
            if !deliveries.is_empty() {
                return Ok(Fetched::Deliveries(deliveries));
            }
            let more = tokio::select! {
                biased;
                () = self.outstanding.until_due() => true,
                more = self.origin.read(self.follow) => more?,
            };
            if !more {
                match self.origin.rest(&self.stream) {
                    Some(event) => {
                        return Ok(Fetched::Deliveries(vec![self.outstanding.hand_out(event)]));
                    }
                    None if self.outstanding.due_at().is_none() => return Ok(Fetched::End),
                    None => self.outstanding.until_due().await,
                }
            }
        }
    }

    /// Hands out what was read already. An error waits until what is before it was handed out.
    fn take_read(&mut self, deliveries: &mut Vec<Delivery>, most: usize) -> Result<()> {
        while deliveries.len() < most {
            match self.origin.next(&self.stream) {
                Ok(Some(event)) => deliveries.push(self.outstanding.hand_out(event)),
                Err(error) if deliveries.is_empty() => return Err(error),
                Ok(None) | Err(_) => break,
            }
        }
        Ok(())
    }

    async fn begin(&mut self, after: Option<Position>) -> Result<()> {
        let Origin::File { place, lines, .. } = &mut self.origin else { return Ok(()) };
        let at = u64::try_from(after.map_or(0, Position::get)).unwrap_or(u64::MAX);
        let file = place.open_at(at).await?;
        *lines = Some(Lines::new(&self.stream, Box::new(file), at, self.line_bytes_max));
        self.outstanding.forget(&self.stream);
        Ok(())
    }
}

impl Origin {
    /// The next event, as far as was read.
    fn next(&mut self, stream: &Arc<str>) -> Result<Option<Event>> {
        let line = match self {
            Self::File { lines: None, .. } => None,
            Self::File { lines: Some(lines), .. } | Self::Input { lines, .. } => lines.next()?,
        };
        Ok(line.map(|line| self.event(stream, line)))
    }

    /// The last one, whose line has no end.
    fn rest(&mut self, stream: &Arc<str>) -> Option<Event> {
        let line = match self {
            Self::File { lines, .. } => lines.as_mut()?.rest(),
            Self::Input { lines, .. } => lines.rest(),
        };
        line.map(|line| self.event(stream, line))
    }

    /// Reads on; `false` at the end, unless a file is followed.
    async fn read(&mut self, follow: bool) -> Result<bool> {
        match self {
            // Nobody has said where to start.
            Self::File { lines: None, .. } => std::future::pending().await,
            Self::Input { lines, .. } => lines.read().await,
            Self::File { place, lines: Some(lines), .. } => {
                while !lines.read().await? {
                    if !follow {
                        return Ok(false);
                    }
                    place.check(lines.end()).await?;
                    tokio::time::sleep(BETWEEN_LOOKS).await;
                }
                Ok(true)
            }
        }
    }

    fn event(&mut self, stream: &Arc<str>, line: Line) -> Event {
        match self {
            Self::File { .. } => {
                let id = format!("{stream}/{}", line.end);
                Event::new(Arc::clone(stream), &id, line.text).at(line.end.into())
            }
            Self::Input { digest, .. } => {
                digest.update(&line.text);
                digest.update(b"\n");
                let mut id = format!("{stream}/{}/", line.number);
                for byte in digest.clone().finalize().iter().take(DIGEST_BYTES) {
                    // Writing to a string cannot fail.
                    let _ = write!(id, "{byte:02x}");
                }
                Event::new(Arc::clone(stream), &id, line.text)
            }
        }
    }
}

impl Source for LinesSource {
    fn reads(&self) -> Reads {
        match self.origin {
            Origin::File { .. } => Reads::Alone,
            // Nothing is remembered but receipts, and those are shared.
            Origin::Input { .. } => Reads::Shared,
        }
    }

    fn fetch(&mut self, most: usize) -> Pending<'_, Fetched> {
        Box::pin(self.news(most))
    }

    fn acknowledge<'a>(&'a mut self, tags: &'a [Tag]) -> Pending<'a, ()> {
        self.outstanding.settle(tags);
        Box::pin(std::future::ready(Ok(())))
    }

    fn give_back<'a>(&'a mut self, tags: &'a [Tag], after: Duration) -> Pending<'a, ()> {
        self.outstanding.give_back(tags, after);
        Box::pin(std::future::ready(Ok(())))
    }

    fn start<'a>(&'a mut self, stream: &'a str, after: Option<Position>) -> Pending<'a, ()> {
        Box::pin(async move { if *stream == *self.stream { self.begin(after).await } else { Ok(()) } })
    }

    fn floor(&mut self) -> Pending<'_, Vec<(Arc<str>, Position)>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn lag(&mut self) -> Pending<'_, Option<u64>> {
        // How many lines are left, only reading them would tell.
        Box::pin(std::future::ready(Ok(None)))
    }

    fn close(&mut self) -> Pending<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl fmt::Debug for LinesSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinesSource({})", self.stream)
    }
}
