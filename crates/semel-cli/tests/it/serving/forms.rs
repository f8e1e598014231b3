//! Every page and every form of the dashboard: by everybody, with and without what proves that a form is from here.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use test_http::{Request, Role, Server, Token};

use super::matrix::{Fresh, World};
use super::pages::binary;
use super::table::{EVERYBODY, FORMS, PAGES, Place, Row, Who};

/// The paths as the router has them.
const ROUTER: &str = include_str!("../../../../semel-server/src/dashboard/router.rs");

/// How a form is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// As a page of the server sends it.
    Proper,
    /// Without the hidden field.
    WithoutProof,
    /// With that of another visit.
    OthersProof,
    /// From a page of another site, as its `Origin` says.
    ForeignOrigin,
    /// From a page of another site, as the browser says.
    CrossSite,
}

const IMPROPER: [Manner; 4] =
    [Manner::WithoutProof, Manner::OthersProof, Manner::ForeignOrigin, Manner::CrossSite];

/// What only a page of this visit can know, as documented.
fn proof(session: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::new().chain_update(b"semel csrf\0").chain_update(session).finalize())
}

fn form(world: &World, endpoint: &str, fresh: &Fresh, who: Who, manner: Manner) -> Request {
    let path = endpoint.trim_start_matches("POST ").replace("{id}", &fresh.id);
    let session = world.token(who).map(|token| token.text.clone()).unwrap_or_default();
    let csrf = match manner {
        Manner::WithoutProof => String::new(),
        Manner::OthersProof => proof("another visit"),
        Manner::Proper | Manner::ForeignOrigin | Manner::CrossSite => proof(&session),
    };
    let version = world.stored(fresh)["version"].to_string();
    let mut values = vec![("csrf", csrf.as_str())];
    match endpoint {
        "POST /keys/{id}/release" => values.extend([("version", version.as_str()), ("reason", "why")]),
        "POST /keys/{id}/requeue" => values.extend([("requeues", "0"), ("reason", "why")]),
        "POST /keys/{id}/resolve" => values.extend([
            ("version", version.as_str()),
            ("how", "done"),
            ("kind", "success"),
            ("outcome", "{}"),
            ("reason", "why"),
        ]),
        "POST /actions" => values.extend([
            ("action", "release"),
            ("id", fresh.id.as_str()),
            ("shown_at", "18446744073709551615"),
            ("why", "why"),
        ]),
        "POST /logout" => {}
        "POST /login" => values.push(("token", session.as_str())),
        _ => panic!("{endpoint} is new: say what its form holds, and add its row to the table"),
    }
    if manner == Manner::WithoutProof {
        values.remove(0);
    }
    let origin = world.server.url("");
    let ask = signed(Request::form(&path, &values), endpoint, &session);
    match manner {
        Manner::ForeignOrigin => ask.header("Origin", "http://evil.test"),
        Manner::CrossSite => ask.header("Sec-Fetch-Site", "cross-site"),
        Manner::Proper | Manner::WithoutProof | Manner::OthersProof => {
            ask.header("Origin", &origin).header("Sec-Fetch-Site", "same-origin")
        }
    }
}

/// With the cookie of a visit; the login page has none yet.
fn signed(ask: Request, endpoint: &str, session: &str) -> Request {
    if session.is_empty() || endpoint == "POST /login" {
        return ask;
    }
    ask.header("Cookie", &format!("semel_session={session}"))
}

/// What one cell of the table got that it must not.
fn fault(
    world: &World,
    row: &Row,
    (place, who): (Place, Who),
    manner: Manner,
    wanted: u16,
) -> Option<String> {
    let fresh = world.fresh(place, row.endpoint);
    let before = world.stored(&fresh);
    let ask = match row.endpoint.strip_prefix("GET ") {
        Some(path) => {
            let path = path.replace("{id}", &fresh.id).replace("{name}", "none");
            let session = world.token(who).map(|token| token.text.clone()).unwrap_or_default();
            signed(Request::get(&path), row.endpoint, &session)
        }
        None => form(world, row.endpoint, &fresh, who, manner),
    };
    let answer = world.server.client().ask(&ask).expect("is answered");
    let cell = || format!("{} about a key of {place:?} by {who:?}, {manner:?}", row.endpoint);
    if answer.status != wanted {
        return Some(format!("{}: {} and not {wanted}", cell(), answer.status));
    }
    let may_change = place == Place::Own && manner == Manner::Proper && who == Who::Of(Role::Operate);
    if !may_change && world.stored(&fresh) != before {
        return Some(format!("{}: changed {before} to {}", cell(), world.stored(&fresh)));
    }
    let sets = answer.first("set-cookie").unwrap_or_default();
    let is_strict = sets.is_empty() || (sets.contains("HttpOnly") && sets.contains("SameSite=Strict"));
    (!is_strict).then(|| format!("{}: sets {sets}", cell()))
}

fn faults(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for (rows, manners) in
        [(PAGES, vec![Manner::Proper]), (FORMS, [vec![Manner::Proper], IMPROPER.to_vec()].concat())]
    {
        for row in rows {
            for (place, wanted) in [(Place::Own, row.own), (Place::Foreign, row.foreign)] {
                for manner in &manners {
                    for (who, wanted) in EVERYBODY.into_iter().zip(wanted) {
                        found.extend(fault(
                            world,
                            row,
                            (place, who),
                            *manner,
                            improper(row, *manner, who, wanted),
                        ));
                    }
                }
            }
        }
    }
    found
}

/// What a form gets that is not sent as it should be: nobody who is in gets past it.
fn improper(row: &Row, manner: Manner, who: Who, wanted: u16) -> u16 {
    match manner {
        Manner::Proper => wanted,
        Manner::ForeignOrigin | Manner::CrossSite => 403,
        Manner::WithoutProof | Manner::OthersProof => match who {
            // There is no visit yet that a proof could be of.
            _ if row.endpoint == "POST /login" => wanted,
            // Those who are not in are sent to the login page, whatever they sent.
            Who::Nobody | Who::Stranger => 303,
            Who::Of(_) => 403,
        },
    }
}

#[test]
fn every_page_and_form_answers_everybody_as_the_table_says() {
    let world = World::start();
    let found = faults(&world);
    assert!(found.is_empty(), "{} cells:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_path_of_the_dashboard_has_a_row_in_the_table() {
    let paths = ROUTER.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")?.split_once('"'));
    let mut routes = 0;
    for (path, how) in paths {
        for (method, word) in [("GET", "get("), ("POST", "post(")] {
            if how.contains(word) {
                routes += 1;
                let name = format!("{method} {path}");
                assert!(PAGES.iter().chain(FORMS).any(|row| row.endpoint == name), "no row for {name}");
            }
        }
    }
    assert_eq!(routes, PAGES.len() + FORMS.len(), "a row without a path");
}

/// The control: without tokens everybody may do everything, but a form must still be from here.
#[test]
fn a_dashboard_without_tokens_fails_the_table_and_still_refuses_forms_from_elsewhere() {
    let world = World::start();
    let open = Server::start(binary(), "memory:", &[]).expect("it serves");
    let world = world.before(open);
    assert!(faults(&world).len() > 20, "everybody may do everything");
    let visit = Token::new(Role::Operate, &[]).text;
    for (manner, wanted) in [
        (None, 303),
        (Some(("Origin", "http://evil.test")), 403),
        (Some(("Sec-Fetch-Site", "cross-site")), 403),
    ] {
        let fresh = world.fresh(Place::Own, "POST /keys/{id}/release");
        let version = world.stored(&fresh)["version"].to_string();
        let values = [("csrf", proof(&visit)), ("version", version), ("reason", "why".to_owned())];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        let mut ask = Request::form(&format!("/keys/{}/release", fresh.id), &values)
            .header("Cookie", &format!("semel_session={visit}"));
        if let Some((name, value)) = manner {
            ask = ask.header(name, value);
        }
        assert_eq!(world.server.client().ask(&ask).expect("is answered").status, wanted, "{manner:?}");
    }
}
