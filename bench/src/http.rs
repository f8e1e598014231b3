//! The measurement over HTTP: a bare handler, the same behind layers that keep keys, and proxies before it.
//!
//! - [`layers`](Layer): the handler, and what is put around it.
//! - [`requests`]: what clients send, and how they check the answers.
//! - [`open_loop`]: requests that do not wait for answers. [`idle`]: connections that send nothing.

mod idle;
mod layers;
mod open_loop;
mod requests;

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_services::{AppendFsync, Redis};

use crate::args::{HttpArgs, HttpPart, word};
use crate::clients::{Pace, Plan};
use crate::folder::{TempFolder, filesystem};
use crate::process::{SemelProgram, SemelStore, Server, free_port, serve};
use crate::report::{
    Bar, Case, ChartBar, Column, MS, Metric, Page, Panel, Row, Rows, TENTHS, WHOLE, drive, grouped,
};
pub(crate) use layers::Layer;
use requests::{CALLERS, Keys, REPLAYED_KEYS, runs, window};

const LAYERS: &str = "layers";
const PROXIES: &str = "proxies";
const NGINX_CONF: &str = include_str!("http/nginx.conf");
const BARE: &str = "bare handler";
const SEMEL_MEMORY: &str = "semel, memory store";
const SEMEL_FILE: &str = "semel, file store";
const AXUM_IDEMPOTENT: &str = "axum-idempotent";
const CRATESTACK_REDIS: &str = "cratestack-axum, Redis";
const CRATESTACK_MAP: &str = "cratestack-axum, a map";
const NGINX: &str = "nginx";
const NGINX_LOG: &str = "nginx, access log";
const PROXY_MEMORY: &str = "semel proxy, memory store";
const PROXY_FILE: &str = "semel proxy, file store";

/// What clients connect to.
#[derive(Clone, Copy, Debug)]
enum Front {
    Handler(Layer),
    Nginx(AccessLog),
    Proxy(SemelStore),
}

type Line = (Case, (Keys, Front));

const fn layer(name: &'static str, keys: Keys) -> Case {
    Case::new(LAYERS, name).setting(keys.words()).load(64)
}

const fn proxy(name: &'static str, keys: Keys) -> Case {
    Case::new(PROXIES, name).setting(keys.words()).load(256)
}

fn lines(part: HttpPart) -> Vec<Line> {
    use Front::{Handler, Nginx, Proxy};
    let of = |case: fn(_, _) -> Case, name, front, keys| (case(name, keys), (keys, front));
    match part {
        HttpPart::Layer => {
            let all = [
                (SEMEL_MEMORY, Layer::SemelMemory),
                (SEMEL_FILE, Layer::SemelFile),
                (AXUM_IDEMPOTENT, Layer::AxumIdempotent),
                (CRATESTACK_REDIS, Layer::CratestackRedis),
                (CRATESTACK_MAP, Layer::CratestackMap),
            ];
            let keyed = [Keys::New, Keys::Done].into_iter().flat_map(|keys| all.map(|one| (one, keys)));
            let keyed = keyed.map(|((name, around), keys)| of(layer, name, Handler(around), keys));
            let unkeyed = [(BARE, Layer::Bare), (SEMEL_MEMORY, Layer::SemelMemory)];
            let unkeyed = unkeyed.map(|(name, around)| of(layer, name, Handler(around), Keys::None));
            unkeyed.into_iter().chain(keyed).collect()
        }
        HttpPart::Proxy => vec![
            of(proxy, NGINX, Nginx(AccessLog::Off), Keys::None),
            of(proxy, NGINX_LOG, Nginx(AccessLog::On), Keys::None),
            of(proxy, PROXY_FILE, Proxy(SemelStore::File), Keys::None),
            of(proxy, PROXY_MEMORY, Proxy(SemelStore::Memory), Keys::New),
            of(proxy, PROXY_FILE, Proxy(SemelStore::File), Keys::New),
            of(proxy, PROXY_FILE, Proxy(SemelStore::File), Keys::Done),
            of(proxy, BARE, Handler(Layer::Bare), Keys::None),
        ],
        HttpPart::OpenLoop | HttpPart::Idle => Vec::new(),
    }
}

/// What all others of a part are compared with.
fn base(part: HttpPart) -> Case {
    match part {
        HttpPart::Layer | HttpPart::OpenLoop => layer(BARE, Keys::None),
        HttpPart::Proxy | HttpPart::Idle => proxy(NGINX, Keys::None),
    }
}

pub(crate) fn run(args: &HttpArgs) -> Result<()> {
    let folder = TempFolder::under(args.folder.as_deref())?;
    let mut page = Page::new("http", include_str!("pages/http.md"), args)?;
    page.fact("filesystem", filesystem(folder.path(), "name a folder on a disk with --folder")?);
    let redis = Redis::start(AppendFsync::EverySecond)?;
    page.fact("nginx", nginx_version()?);
    page.fact("Redis", crate::servers::redis_version(&redis).context("Redis does not answer")?);
    let semel = SemelProgram::new(args.semel.as_deref());
    if args.parts().any(|part| part != HttpPart::Layer) {
        semel.describe(&mut page);
    }
    page.fact_other_processes();
    let backends = Backends { folder: &folder, redis: &redis.url(), semel: &semel };
    measure(args, &backends, &mut page.rows)?;
    let span = Duration::from_millis(args.window_ms);
    if args.parts().any(|part| part == HttpPart::OpenLoop) {
        open_loop::measure(args.run.rounds, span, &backends, &mut page.rows)?;
    }
    if args.parts().any(|part| part == HttpPart::Idle) {
        idle::measure(&backends, &mut page.rows)?;
    }
    let bars = args.parts().flat_map(|part| bars(&page.rows, part));
    // With --line, bars of other lines are left out; otherwise what was not measured is not reached.
    page.bars = bars.filter(|bar| args.line.is_none() || !bar.found.contains("NaN")).collect();
    describe(&mut page, args);
    page.is_part = !args.only.is_empty() || args.line.is_some();
    page.publish(args.run.results.as_deref())
}

pub(crate) fn run_server(layer: Layer, location: &str, port: u16) -> Result<()> {
    serve(port, || layers::router(layer, location))
}

struct Backends<'a> {
    folder: &'a TempFolder,
    redis: &'a str,
    semel: &'a SemelProgram,
}

fn measure(args: &HttpArgs, backends: &Backends<'_>, rows: &mut Rows) -> Result<()> {
    let wanted = |part: HttpPart| {
        let is_wanted = |(case, _): &Line| {
            let name = format!("{}, {}", case.contestant, case.setting);
            args.line.as_ref().is_none_or(|text| name.contains(text)) || *case == base(part)
        };
        lines(part).into_iter().filter(is_wanted).collect()
    };
    let groups: Vec<Vec<Line>> = args.parts().map(wanted).collect();
    let (mut first, span) = (0, Duration::from_millis(args.window_ms));
    drive(args.run.rounds, &groups, rows, &mut |case, (keys, front)| {
        let servers = Servers::start(*front, backends)?;
        let plan = servers.plan(span, Pace::Answered);
        let window = window(plan, case.load, *keys, first)?;
        let ran = servers.runs()?;
        ensure!(ran == window.runs, "the handler ran {ran} times, and clients saw {} runs", window.runs);
        first = window.next;
        Ok(vec![(case, window.sample)])
    })
}

struct Servers {
    /// What clients connect to. Dropped first: a proxy has connections to the handler.
    front: Server,
    /// The handler behind it, if it is a proxy.
    handler: Option<Server>,
}

impl Servers {
    /// Starts them anew: nothing is kept of an earlier window but what Redis has.
    fn start(front: Front, backends: &Backends<'_>) -> Result<Self> {
        let folder = backends.folder.fresh("server")?;
        let handler = |layer: Layer, location: &str| {
            let log = backends.folder.fresh("handler")?;
            Server::of_this_program(&["http-serve", &word(&layer), location], &log)
        };
        let (front, handler) = match front {
            Front::Handler(layer) => {
                let location = match layer {
                    Layer::CratestackRedis => backends.redis,
                    _ => folder.to_str().context("the path of the folder is not UTF-8")?,
                };
                (handler(layer, location)?, None)
            }
            Front::Nginx(log) => {
                let handler = handler(Layer::Bare, "")?;
                (start_nginx(handler.port, log, &folder)?, Some(handler))
            }
            Front::Proxy(store) => {
                let handler = handler(Layer::Bare, "")?;
                let upstream = format!("http://127.0.0.1:{}", handler.port);
                // As nginx beside it: a proxy and nothing else.
                let off = ["--admin", "off", "--access-log", "off"];
                let arguments = [["proxy", "--upstream", &upstream].as_slice(), &off].concat();
                (backends.semel.start(&arguments, store, &folder)?, Some(handler))
            }
        };
        Ok(Self { front, handler })
    }

    fn plan(&self, span: Duration, pace: Pace) -> Plan {
        Plan { port: self.front.port, pid: self.front.pid(), span, pace }
    }

    /// How often the handler ran since it was started.
    fn runs(&self) -> Result<u64> {
        runs(self.handler.as_ref().unwrap_or(&self.front).port)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessLog {
    Off,
    /// As it is by default: a line for each, unbuffered.
    On,
}

/// Starts nginx, as it is installed, before the server on port `upstream`.
fn start_nginx(upstream: u16, log: AccessLog, folder: &std::path::Path) -> Result<Server> {
    let port = free_port()?;
    let configuration = folder.join("nginx.conf");
    let folder_text = folder.to_str().context("the path of the folder is not UTF-8")?;
    let log = match log {
        AccessLog::Off => "off",
        AccessLog::On => "FOLDER/access.log",
    };
    let (listen, handler) = (port.to_string(), upstream.to_string());
    let values = [("PORT", listen.as_str()), ("UPSTREAM", &handler), ("LOG", log), ("FOLDER", folder_text)];
    let filled = values.iter().fold(NGINX_CONF.to_owned(), |text, (name, value)| text.replace(name, value));
    fs::write(&configuration, filled)?;
    let configuration = configuration.to_str().context("the path of the folder is not UTF-8")?;
    Server::start(&["nginx", "-p", folder_text, "-c", configuration], port, folder)
}

fn nginx_version() -> Result<String> {
    let output = Command::new("nginx").arg("-v").output().context("install nginx-light")?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "`nginx -v` failed: {printed}");
    Ok(printed.trim().trim_start_matches("nginx version: nginx/").to_owned())
}

fn bars(rows: &Rows, part: HttpPart) -> Vec<Bar> {
    let name = |case: Case| format!("{}, {}", case.contestant, case.setting);
    let rate = |own: Case, wanted, other| rows.at_least(name(own), wanted, own, other);
    let cpu = |own: Case, wanted, other: Case| {
        let times = rows.times(own, other, Metric::ServerCpuUs);
        Bar::at_most(format!("{}, CPU", name(own)), wanted, times, &format!("× {}", other.contestant))
    };
    let base = base(part);
    match part {
        HttpPart::Layer => vec![
            rate(layer(SEMEL_MEMORY, Keys::None), 0.98, base),
            rate(layer(SEMEL_MEMORY, Keys::New), 0.65, base),
            cpu(layer(SEMEL_MEMORY, Keys::New), 1.8, base),
            rate(layer(SEMEL_MEMORY, Keys::Done), 0.95, base),
            rate(layer(SEMEL_FILE, Keys::New), 0.5, base),
            // With every guarantee on, not slower than layers that guarantee less.
            rate(layer(SEMEL_MEMORY, Keys::New), 1.0, layer(AXUM_IDEMPOTENT, Keys::New)),
            rate(layer(SEMEL_MEMORY, Keys::New), 0.95, layer(CRATESTACK_MAP, Keys::New)),
            rate(layer(SEMEL_MEMORY, Keys::Done), 1.0, layer(AXUM_IDEMPOTENT, Keys::Done)),
            rate(layer(SEMEL_MEMORY, Keys::Done), 0.95, layer(CRATESTACK_MAP, Keys::Done)),
        ],
        HttpPart::Proxy => vec![
            rate(proxy(PROXY_FILE, Keys::None), 0.75, base),
            cpu(proxy(PROXY_FILE, Keys::None), 1.5, base),
            rate(proxy(PROXY_FILE, Keys::New), 0.42, base),
            rate(proxy(PROXY_FILE, Keys::Done), 1.2, base),
        ],
        HttpPart::OpenLoop => Vec::new(),
        HttpPart::Idle => idle::bars(rows),
    }
}

fn describe(page: &mut Page, args: &HttpArgs) {
    page.value("replayed_keys", grouped(REPLAYED_KEYS));
    page.value("callers", grouped(CALLERS));
    for part in args.parts() {
        let (work, title, times, cpu) = match part {
            HttpPart::Layer => (LAYERS, "Layers around a handler", "× bare", "CPU time of the server"),
            HttpPart::Proxy => (PROXIES, "Proxies before a handler", "× nginx", "CPU time of the proxy"),
            HttpPart::OpenLoop => {
                open_loop::describe(page);
                continue;
            }
            HttpPart::Idle => {
                idle::describe(page);
                continue;
            }
        };
        let beside = move |case| (case, base(part));
        let columns = [
            Column::text("", |case| case.contestant.to_owned()),
            Column::text("requests", |case| case.setting.to_owned()),
            Column::load("connections"),
            Column::median("per second", Metric::PerSecond, WHOLE),
            Column::range(Metric::PerSecond, WHOLE),
            Column::median("p50 ms", Metric::P50Us, MS),
            Column::median("p99 ms", Metric::P99Us, MS),
            Column::median("server CPU µs", Metric::ServerCpuUs, TENTHS),
            Column::median("client CPU µs", Metric::ClientCpuUs, TENTHS),
            Column::times(times, Metric::PerSecond, beside),
            Column::times("CPU", Metric::ServerCpuUs, beside),
        ];
        page.table(work, &columns);
        let connections = base(part).load;
        let rate = |row: &Row| (row.case.setting.to_owned(), ChartBar::rate(row));
        let title = format!("{title}, {connections} connections");
        page.panel(Panel::new(title, "requests per second: more is better", page.rows.of(work), rate));
        let bar =
            |row: &Row| (row.case.setting.to_owned(), ChartBar::of(row, Metric::ServerCpuUs, WHOLE, ""));
        let title = format!("{cpu}, {connections} connections");
        page.panel(Panel::new(title, "microseconds a request: less is better", page.rows.of(work), bar));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};

    use axum::Router;
    use axum::middleware::map_response;
    use axum::response::Response;

    use super::layers::{Runs, charges, counts};
    use super::*;
    use crate::report::{rates, reached};

    /// The handler with a change, in this process.
    fn changed(change: impl FnOnce(Router) -> Router) -> u16 {
        let runs = Runs::default();
        crate::process::served(change(charges(runs.clone())).merge(counts(runs)))
    }

    fn measured(port: u16, keys: Keys) -> Result<requests::Window> {
        measured_at(port, keys, Pace::Answered)
    }

    fn measured_at(port: u16, keys: Keys, pace: Pace) -> Result<requests::Window> {
        let plan = Plan { port, pid: std::process::id(), span: Duration::from_millis(60), pace };
        window(plan, 4, keys, 5_000)
    }

    #[test]
    fn a_window_counts_every_request_that_it_sent() {
        let port = changed(|router| router);
        let found = measured(port, Keys::New).unwrap();
        let sample = &found.sample;
        assert!(
            sample[&Metric::PerSecond] > 0.0 && sample[&Metric::P50Us] <= sample[&Metric::P99Us],
            "{found:?}"
        );
        assert_eq!(runs(port).unwrap(), found.runs);
        assert_eq!(found.next, 5_000 + found.runs.max(REPLAYED_KEYS));
    }

    #[test]
    fn a_handler_that_runs_again_is_no_replay() {
        let error = measured(changed(|router| router), Keys::Done).unwrap_err();
        assert!(error.to_string().contains("not that of its first run"), "{error:#}");
    }

    #[test]
    fn a_handler_that_runs_again_and_says_replay_is_found_out() {
        let lie = async |mut response: Response| {
            let location = response.headers().get("location");
            if location.is_some_and(|location| location.as_bytes().ends_with(b"42")) {
                let replayed = axum::http::header::HeaderName::from_static("idempotent-replayed");
                response.headers_mut().insert(replayed, "true".parse().unwrap());
            }
            response
        };
        for keys in [Keys::Done, Keys::New] {
            let error = measured(changed(|router| router.layer(map_response(lie))), keys).unwrap_err();
            assert!(error.to_string().contains("replayed before it ran"), "{keys:?}: {error:#}");
        }
    }

    #[test]
    fn an_answer_that_was_changed_on_its_way_is_found_out() {
        let shorter = async |response: Response| response.map(|_| axum::body::Body::from("{}"));
        let error = measured(changed(|router| router.layer(map_response(shorter))), Keys::None).unwrap_err();
        assert!(error.to_string().contains("was answered with {}"), "{error:#}");
    }

    #[test]
    fn nginx_is_before_the_handler_and_gone_afterwards() {
        let folder = TempFolder::for_test("nginx");
        let port = changed(|router| router);
        let nginx = start_nginx(port, AccessLog::On, folder.path()).unwrap();
        let found = measured(nginx.port, Keys::None).unwrap();
        assert_eq!(runs(port).unwrap(), found.runs);
        let logged = fs::read_to_string(folder.path().join("access.log")).unwrap();
        assert_eq!(logged.lines().count() as u64, found.runs);
        let front = nginx.port;
        drop(nginx);
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, front)).is_err());
    }

    #[test]
    fn an_open_loop_sends_at_its_rate_and_counts_the_wait_for_a_connection() {
        let port = changed(|router| router);
        let found = measured_at(port, Keys::New, Pace::Evenly(500.0)).unwrap();
        let rate = found.sample[&Metric::PerSecond];
        assert!((300.0..700.0).contains(&rate), "{found:?}");
        let slow = async |response: Response| {
            tokio::time::sleep(Duration::from_millis(20)).await;
            response
        };
        // Four connections that take 20 ms each answer 200 a second: at 500 a second, requests wait for one.
        let port = changed(|router| router.layer(map_response(slow)));
        let found = measured_at(port, Keys::New, Pace::Evenly(500.0)).unwrap();
        assert!(found.sample[&Metric::LongestUs] > 30_000.0, "{found:?}");
        assert_eq!(runs(port).unwrap(), found.runs);
    }

    #[test]
    fn a_proxy_is_compared_with_nginx() {
        let rows = rates(&[
            (proxy(NGINX, Keys::None), &[10.0, 1000.0, 100.0]),
            (proxy(PROXY_FILE, Keys::New), &[5.0, 420.0, 10.0]),
        ]);
        let bars = bars(&rows, HttpPart::Proxy);
        let [none, cpu, new, replays] = bars.as_slice() else { panic!("{bars:?}") };
        assert!(new.reached && new.found == "0.42×" && new.wanted == "at least 0.42× nginx", "{new:?}");
        assert!(![none, cpu, replays].iter().any(|bar| bar.reached), "what was not measured is not reached");
    }

    #[test]
    fn a_layer_has_to_reach_its_bars_with_new_keys_and_with_replays() {
        let all = [
            (layer(BARE, Keys::None), [100.0]),
            (layer(SEMEL_MEMORY, Keys::None), [98.0]),
            (layer(SEMEL_MEMORY, Keys::New), [64.0]),
            (layer(SEMEL_MEMORY, Keys::Done), [95.0]),
            (layer(SEMEL_FILE, Keys::New), [50.0]),
            (layer(AXUM_IDEMPOTENT, Keys::New), [64.0]),
            (layer(CRATESTACK_MAP, Keys::New), [68.0]),
            (layer(AXUM_IDEMPOTENT, Keys::Done), [96.0]),
            (layer(CRATESTACK_MAP, Keys::Done), [100.0]),
        ];
        let rows = rates(&all.iter().map(|(case, rate)| (*case, rate.as_slice())).collect::<Vec<_>>());
        let bars = bars(&rows, HttpPart::Layer);
        let expected = [true, false, false, true, true, true, false, false, true];
        assert_eq!(reached(&bars), expected, "{bars:?}");
    }
}
