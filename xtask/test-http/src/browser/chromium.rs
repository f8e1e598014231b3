//! The process. It has a profile of its own, no port, and ends when its pipe does: with us, however we end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;
use tempfile::TempDir;

use super::page::Page;
use super::page::Screen;
use super::wire::Wire;

/// Where Debian's package puts it.
const PROGRAM: &str = "/usr/bin/chromium";
/// It reads commands from descriptor 3 and answers on 4; what we have are its input and output.
const SCRIPT: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;
const OPTIONS: [&str; 15] = [
    "--headless=new",
    // Its sandbox needs rights that a container does not give; it visits nobody but our own server.
    "--no-sandbox",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
];

/// A running browser. Dropped, it is killed.
pub struct Browser {
    wire: Arc<Wire>,
    child: Child,
    _profile: TempDir,
}

impl Browser {
    /// Starts one.
    pub fn start() -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(program()?).args(OPTIONS);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.env("HOME", profile.path()).current_dir(profile.path());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start `sh`")?;
        let to = child.stdin.take().context("there is no pipe to the browser")?;
        let from = child.stdout.take().context("there is no pipe from the browser")?;
        let browser = Self { wire: Wire::new(to, from), child, _profile: profile };
        browser.wire.call(None, "Browser.getVersion", &json!({})).context("the browser does not answer")?;
        Ok(browser)
    }

    /// A new window. All windows share their cookies.
    pub fn page(&self, screen: Screen) -> Result<Page> {
        Page::open(&self.wire, screen)
    }

    /// Forgets all cookies.
    pub fn forget(&self) -> Result<()> {
        self.wire.call(None, "Storage.clearCookies", &json!({})).map(drop)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The processes that it started end when it does.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn program() -> Result<PathBuf> {
    let path = Path::new(PROGRAM);
    path.is_file().then(|| path.to_path_buf()).context("Chromium is not installed: apt-get install chromium")
}
