//! A command's process group: the command, and whatever it started.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The processes of a command. Dropped before they are let go, they are killed: nobody would renew their lease, or
/// hear what they say.
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group that this child leads.
    pub(super) fn of(child: &Child) -> Self {
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        Self(number.and_then(Pid::from_raw))
    }

    /// Kills them all.
    pub(super) fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            // They may all be gone by now.
            let _gone = kill_process_group(leader, Signal::KILL);
        }
    }

    /// The command has ended by itself. What it left in the background is its own affair.
    pub(super) fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
