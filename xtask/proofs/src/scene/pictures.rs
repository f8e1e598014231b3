//! Pictures of every page: light and dark, on a desktop and on a phone.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use test_http::{Browser, Page, Role, Screen, Server, Token};
use xtask::needs;
use xtask::run::{passed, started};

use super::data::{bustle, fill, streams};
use crate::progress::Progress;
use crate::release;

/// How many seconds of life the charts show.
const SECONDS: usize = 20;
const RECORDS: usize = 5_000;
/// How often [`pictures`] says that it got further.
pub(super) const PICTURE_STEPS: u64 = 20 + 4 * 15;

/// Makes them in this folder, with a server of this binary on this store; says where they are.
pub(super) fn pictures(binary: &Path, store: &str, folder: &Path, step: &dyn Fn()) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let worker = Token::new(Role::Work, &[]).named("payments");
    let person = Token::new(Role::Operate, &[]).named("on call");
    let tokens = [worker.clone(), person.clone()];
    streams(binary, store)?;
    // By a server of its own: thousands of records in a second are nothing that charts should show.
    let filling = Server::start(binary, store, &tokens)?;
    let scene = fill(&mut filling.client().with_token(&worker), RECORDS)?;
    drop(filling);
    let server = Server::start(binary, store, &tokens)?;
    let mut client = server.client().with_token(&worker);
    for round in 0..SECONDS {
        bustle(&mut client, round)?;
        sleep(Duration::from_secs(1));
        step();
    }
    let id = |ids: &[String]| ids.first().cloned().unwrap_or_default();
    let (held, running, done) = (id(&scene.held), id(&scene.running), id(&scene.done));
    let pages = [
        ("overview", "/".to_owned()),
        ("attention", "/attention".to_owned()),
        ("resolve-many", "/actions?action=resolve&match=all".to_owned()),
        ("release-many", "/actions?action=release&match=all".to_owned()),
        ("keys", "/keys".to_owned()),
        ("keys-held", "/keys?state=held".to_owned()),
        ("keys-none", "/keys?operation=no-such-operation".to_owned()),
        ("key-held", format!("/keys/{held}")),
        ("key-running", format!("/keys/{running}")),
        ("key-done", format!("/keys/{done}")),
        ("resolve", format!("/keys/{held}/resolve")),
        ("release", format!("/keys/{running}/release")),
        ("pipelines", "/pipelines".to_owned()),
        ("not-found", "/keys/none".to_owned()),
        ("docs", "/docs".to_owned()),
    ];
    let browser = Browser::start()?;
    let mut made = Vec::new();
    for screen in Screen::ALL {
        browser.forget()?;
        let page = browser.page(screen)?;
        page.go(&server.url("/login"))?;
        made.push(picture(&page, folder, "login", screen)?);
        page.log_in(&person)?;
        for (number, (name, path)) in pages.iter().enumerate() {
            page.go(&server.url(path))?;
            if *name == "overview" {
                // Something happens while somebody looks.
                bustle(&mut client, SECONDS + made.len() + number)?;
                sleep(Duration::from_secs(1));
            }
            made.push(picture(&page, folder, name, screen)?);
            step();
        }
    }
    Ok(made)
}

fn picture(page: &Page, folder: &Path, name: &str, screen: Screen) -> Result<PathBuf> {
    let path = folder.join(format!("{name}-{}.png", screen.name));
    fs::write(&path, page.picture()?).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Make pictures of every page of the dashboard, in light and dark, on a desktop and on a phone.
///
/// A server of its own is filled with what a shop would do for half a minute; nothing is left of it but the pictures.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the pictures are written.
    #[arg(default_value = "target/screenshots")]
    folder: PathBuf,
    /// Look at this binary's server, instead of that of the release one that is built first.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Makes them.
pub fn run(args: &Args) -> Result<()> {
    needs::for_browser()?;
    let binary = args.binary.clone().map_or_else(release::binary, Ok)?;
    started("screenshots");
    let store = tempfile::tempdir().context("there is no room for a store")?;
    let bar = Progress::new("screenshots", PICTURE_STEPS);
    let url = format!("file:{}", store.path().join("store").display());
    let made = pictures(&binary, &url, &args.folder, &|| bar.step());
    drop(bar);
    let made = made?;
    for path in &made {
        println!("{}", path.display());
    }
    passed(&format!("{} pictures in {}", made.len(), args.folder.display()));
    Ok(())
}
