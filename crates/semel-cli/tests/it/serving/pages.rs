//! A server with a worker and a person on call, and a browser in which that person is logged in.

use std::path::Path;

use tempfile::TempDir;
use test_http::blocking::Client;
use test_http::{Browser, Page, Role, Screen, Server, Token};

pub(super) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_semel"))
}

/// A server on a store in a folder of its own.
pub(super) struct Stage {
    pub(super) server: Server,
    pub(super) worker: Token,
    pub(super) person: Token,
    _folder: TempDir,
}

impl Stage {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let store = format!("file:{}", folder.path().join("store").display());
        let (worker, person) = (Token::new(Role::Work, &[]), Token::new(Role::Operate, &[]));
        let server = Server::start(binary(), &store, &[worker.clone(), person.clone()]).expect("it serves");
        Self { server, worker, person, _folder: folder }
    }

    pub(super) fn client(&self) -> Client {
        self.server.client().with_token(&self.worker)
    }

    /// A window in which the person is logged in; all windows of a browser share that.
    pub(super) fn page(&self, browser: &Browser) -> Page {
        let page = browser.page(Screen::DESKTOP).expect("a window opens");
        page.watch().expect("is watched");
        page.go(&self.server.url("/login")).expect("the login page opens");
        page.log_in(&self.person).expect("is logged in");
        page
    }

    pub(super) fn go(&self, page: &Page, path: &str) {
        page.go(&self.server.url(path)).expect("the page opens");
    }
}
