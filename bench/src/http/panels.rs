//! Which numbers become which bars.

use super::entry::{
    AXUM_IDEMPOTENT, BARE, CRATESTACK_MAP, CRATESTACK_REDIS, NGINX, NGINX_LOG, PROXY_FILE, PROXY_MEMORY,
    SEMEL_FILE, SEMEL_MEMORY,
};
use super::results::{Line, Results};
use crate::args::HttpPart;
use crate::report::svg::{Bar, Group, Panel, draw};

/// Told apart by lightness too, for those who do not see the hues.
const COLOURS: [(&str, &str); 10] = [
    (BARE, "#8a949e"),
    (SEMEL_MEMORY, "#1d5fa8"),
    (SEMEL_FILE, "#7fb0e0"),
    (PROXY_MEMORY, "#1d5fa8"),
    (PROXY_FILE, "#7fb0e0"),
    (AXUM_IDEMPOTENT, "#b8860b"),
    (CRATESTACK_REDIS, "#ecd48f"),
    (CRATESTACK_MAP, "#d4a72c"),
    (NGINX, "#b8860b"),
    (NGINX_LOG, "#ecd48f"),
];

/// The chart of a run.
pub(super) fn chart(results: &Results) -> String {
    let note = format!(
        "{}; nginx {}; median and range of {} round{}; servers and clients share {} cores",
        results.facts.cpu,
        results.nginx,
        results.settings.rounds,
        if results.settings.rounds == 1 { "" } else { "s" },
        results.facts.cores
    );
    let panels: Vec<Panel> =
        results.settings.parts().flat_map(|part| of_part(&results.lines, part)).collect();
    draw("semel over HTTP, beside a bare handler, other layers, and nginx", &note, &COLOURS, &panels)
}

fn of_part(lines: &[Line], part: HttpPart) -> [Panel; 2] {
    let (what, cpu) = match part {
        HttpPart::Layer => ("Layers around a handler", "CPU time of the server"),
        HttpPart::Proxy => ("Proxies before a handler", "CPU time of the proxy"),
    };
    let lines: Vec<&Line> = lines.iter().filter(|line| line.part == part).collect();
    let connections = lines.first().map_or(0, |line| line.connections);
    let rates = Panel {
        title: format!("{what}, {connections} connections"),
        axis: "requests per second: more is better".to_owned(),
        groups: groups(&lines, speed),
    };
    let times = Panel {
        title: format!("{cpu}, {connections} connections"),
        axis: "microseconds a request: less is better".to_owned(),
        groups: groups(&lines, |line| Bar::exact(line.contestant, line.server_cpu_us)),
    };
    [rates, times]
}

fn speed(line: &Line) -> Bar {
    Bar {
        name: line.contestant.to_owned(),
        value: line.per_second.median,
        low: line.per_second.min,
        high: line.per_second.max,
        label: format!("{:.0}  (p99 {:.1} ms)", line.per_second.median, line.p99_us / 1e3),
    }
}

/// One group for each kind of requests.
fn groups(lines: &[&Line], bar: impl Fn(&Line) -> Bar) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for line in lines {
        match groups.iter_mut().find(|group| group.label == line.keys) {
            Some(group) => group.bars.push(bar(line)),
            None => groups.push(Group { label: line.keys.to_owned(), bars: vec![bar(line)] }),
        }
    }
    groups
}
