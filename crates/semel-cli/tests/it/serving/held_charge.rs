//! A charge behind a real proxy whose end is not known: found on the dashboard, resolved with a form, and the client's retry gets just that.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use test_http::blocking::Client;
use test_http::{Answer, Browser, Page, Program, Request, Screen, until_blocking};

use crate::binary::semel;

/// A payment service that takes every charge and hangs up before it answers.
fn hangs_up() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let (address, charges) = (listener.local_addr().expect("is somewhere"), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&charges);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut head) = (stream.expect("is taken"), [0; 4_096]);
            if stream.read(&mut head).is_ok_and(|read| read > 0) {
                counted.fetch_add(1, Ordering::AcqRel);
            }
        }
    });
    (address, charges)
}

/// `semel proxy` with its dashboard, before that service.
struct Counter {
    _program: Program,
    clients: SocketAddr,
    dashboard: SocketAddr,
    charges: Arc<AtomicUsize>,
    _folder: TempDir,
}

impl Counter {
    fn open() -> Self {
        let (upstream, charges) = hangs_up();
        let folder = tempfile::tempdir().expect("a folder for a test");
        let file = folder.path().join("semel.toml");
        let config = format!(
            "upstream = 'http://{upstream}'\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nstore = 'memory:'\n\
             [rules]\nlease = '500ms'\n"
        );
        std::fs::write(&file, config).expect("is written");
        let mut program = Program::start(semel().args(["proxy", "--config"]).arg(&file)).expect("starts");
        let clients = program.listening().expect("listens");
        let said = program.err();
        let (_, admin) = said.split_once("the dashboard on http://").expect("it says where the dashboard is");
        let dashboard = admin.lines().next().and_then(|line| line.parse().ok()).expect("is an address");
        Self { _program: program, clients, dashboard, charges, _folder: folder }
    }

    fn charge(&self) -> Answer {
        let ask = Request::json("/charges", "{\"cents\":4200}").from("alice").key("\"pay-1\"");
        Client::new(self.clients).ask(&ask).expect("is answered")
    }

    fn go(&self, page: &Page, path: &str) {
        page.go(&format!("http://{}{path}", self.dashboard)).expect("the page opens");
    }
}

/// From the list of what needs a person to the form that resolves the only key on it.
fn open_the_form(counter: &Counter, page: &Page) {
    counter.go(page, "/attention");
    page.until("the held charge", "document.querySelectorAll('[data-test=key-row]').length === 1")
        .expect("is listed");
    let text = page.text().expect("has text");
    assert!(text.contains("POST /charges") && text.contains("pay-1"), "{text}");
    page.click("[data-test=key-row] a[href$='/resolve']").expect("there is a button");
    page.until("the form", "!!document.querySelector('textarea[name=body]')").expect("asks first");
}

#[test]
fn a_held_charge_is_resolved_on_the_dashboard_and_the_clients_retry_gets_that_answer() {
    let counter = Counter::open();
    counter.charge().refused(504, "outcome_unknown");
    // The control: before it is resolved, no retry gets an answer, and none runs.
    let held = until_blocking("the lease to lapse", || {
        Some(counter.charge()).filter(|answer| answer.code().as_deref() != Some("in_flight"))
    });
    held.refused(409, "outcome_held");

    let browser = Browser::start().expect("the browser starts");
    let page = browser.page(Screen::DESKTOP).expect("a window opens");
    open_the_form(&counter, &page);
    page.fill("[name=status]", "201").expect("there is a field");
    page.fill("[name=headers]", "Location: /charges/7").expect("there is a field");
    page.fill("[name=content_type]", "application/json").expect("there is a field");
    page.fill("[name=body]", "{\"id\":7,\"cents\":4200}").expect("there is a field");
    page.click("[data-test=confirm]").expect("there is a button");
    page.until("the response on the key's page", "!!document.querySelector('[data-test=response]')")
        .expect("is shown");
    let text = page.text().expect("has text");
    assert!(
        text.contains("HTTP 201 Created") && text.contains("A retry gets exactly this response"),
        "{text}"
    );

    let retry = counter.charge();
    assert_eq!((retry.status, retry.text(), retry.is_replay()), (201, "{\"id\":7,\"cents\":4200}", true));
    assert_eq!(retry.header("location"), Some("/charges/7"));
    assert_eq!(retry.header("content-type"), Some("application/json"));
    assert_eq!(counter.charges.load(Ordering::Acquire), 1, "the service was asked once");
}
