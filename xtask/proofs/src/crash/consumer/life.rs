//! One life of the victim: it says what it finds, hears what to do about it, goes on, and dies or ends.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::batch::Batch;
use super::look::Look;
use super::scene::Scene;
use super::world::World;
use xtask::run::program;

const SIGKILL: i32 = 9;

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Killed,
    /// There was nothing more that it could do.
    ByItself,
}

/// A victim that lives.
pub(super) struct Life {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    complaints: PathBuf,
}

impl Life {
    /// Starts a victim that dies as told, if at all.
    pub(super) fn start(world: &World, scene: Scene, batch: &Batch, fate: Option<&str>) -> Result<Self> {
        let [handler, lapse] = scene.handler.words();
        let mut command = Command::new(&world.program);
        command.args(["run", "--store", &batch.store, "--origin", &batch.origin]);
        command.args(["--pipeline", &batch.pipeline, "--events", &batch.events.to_string()]);
        command.args(["--handler", handler, "--lapse", lapse, "--effects"]).arg(&batch.effects);
        command.args(fate.iter().flat_map(|fate| ["--fate", fate]));
        command.args(scene.sabotage.iter().flat_map(|sabotage| ["--sabotage", sabotage.word()]));
        let complaints = OpenOptions::new().create(true).append(true).open(&batch.complaints)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints);
        let mut child = command.spawn().context("cannot start the victim")?;
        let input = child.stdin.take().context("a victim that does not listen")?;
        let output = child.stdout.take().context("a victim without a voice")?;
        Ok(Self { child, input, output: BufReader::new(output), complaints: batch.complaints.clone() })
    }

    /// What it finds.
    pub(super) fn look(&mut self) -> Result<Look> {
        let mut look = Look::default();
        while look.hear(self.line()?.trim_end())? {}
        Ok(look)
    }

    /// How many deliveries the broker does not know to be processed.
    pub(super) fn left(&mut self) -> Result<u64> {
        self.say("left")?;
        let line = self.line()?;
        let left = line.trim_end().strip_prefix("left ").context("a victim that does not answer")?;
        Ok(left.parse()?)
    }

    pub(super) fn say(&mut self, words: &str) -> Result<()> {
        writeln!(self.input, "{words}").context("a victim that does not listen")
    }

    /// Waits for its end.
    pub(super) fn end(mut self) -> Result<Ended> {
        let status = self.child.wait().context("cannot wait for a victim")?;
        match status.signal() {
            Some(SIGKILL) => Ok(Ended::Killed),
            _ if status.success() => Ok(Ended::ByItself),
            _ => bail!("a victim failed ({status}): {}", self.complaint()),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("a victim ended before it was told to: {}", self.complaint());
        }
        Ok(line)
    }

    fn complaint(&self) -> String {
        let said = fs::read_to_string(&self.complaints).unwrap_or_default();
        said.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // On the way out of an error, nothing may be left running. Whoever is dead already does not mind.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Publishes every line of a file.
pub(super) fn publish(world: &World, origin: &str, file: &Path) -> Result<()> {
    program(&world.program, [Path::new("publish"), Path::new(origin), file]).quietly()
}

/// Makes the tables in PostgreSQL.
pub(super) fn prepare(world: &World) -> Result<()> {
    program(&world.program, ["prepare", &world.postgres.url()]).quietly()
}
