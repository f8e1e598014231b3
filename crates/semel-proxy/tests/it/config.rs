//! Config files as people write them: right ones, wrong ones, and what is said to those.

use std::time::Duration;

use http::{Method, StatusCode};
use semel::{Lapse, OnOutage};
use semel_config::Errors;
use semel_http::{
    Code, Hosts, KeyIdentity, KeyPresence, KeyScope, OnServerError, Profile, UnquotedKeys, WhileRunning,
};
use semel_listen::ListenerConfig;
use semel_ops::store_setting::StoreOverrides;
use semel_proxy::config::{Admin, Config, Named, Overrides};
use semel_proxy::{AccessLog, ProxySettings, UnderscoresInHeaders, UpstreamLimits, UpstreamVersion};

const UPSTREAM: &str = "upstream = 'http://127.0.0.1:3000'\n";

fn parsed(text: &str) -> Result<Config, Errors> {
    Config::parse(text, "semel.toml")
}

fn settings(rest: &str) -> ProxySettings {
    let text = format!("{UPSTREAM}{rest}");
    parsed(&text).and_then(|config| config.settings()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What is said to a file whose second line and following are these.
fn refused(rest: &str) -> String {
    let text = format!("{UPSTREAM}{rest}");
    parsed(&text).and_then(|config| config.settings()).expect_err(rest).to_string()
}

#[test]
fn an_upstream_is_all_that_a_file_needs() {
    let settings = settings("");
    assert_eq!(settings.upstream, "http://127.0.0.1:3000");
    assert_eq!(
        (settings.listener.listen.to_string(), settings.admin.map(|admin| admin.to_string())),
        ("127.0.0.1:8080".into(), Some("127.0.0.1:9464".into()))
    );
    assert_eq!(settings.store.to_string(), "file:./semel-data");
    assert_eq!(settings.listener, ListenerConfig::new(settings.listener.listen));
    assert_eq!(settings.upstream_limits, UpstreamLimits::default());
    assert_eq!(format!("{:?}", settings.http.profile), format!("{:?}", Profile::ietf()));
    let errors =
        Config::none("semel proxy").settings().expect_err("nobody said where requests go").to_string();
    assert!(errors.contains("--upstream http://127.0.0.1:3000"), "{errors}");
}

#[test]
fn the_caller_is_never_one_that_all_share_unless_that_is_said() {
    let unsaid = settings("");
    let said = settings("[principal]\nfrom = 'authorization'\nor = 'peer'\n");
    let shared = settings("[principal]\nfrom = 'shared'\n");
    assert_eq!(format!("{:?}", unsaid.principal), format!("{:?}", said.principal));
    assert_ne!(format!("{:?}", unsaid.principal), format!("{:?}", shared.principal));
}

#[test]
fn h60_callers_are_told_apart_as_the_file_says() {
    let told = |rest: &str| settings(rest).principal.to_string();
    for (rest, words) in [
        (
            "",
            "a digest of `authorization`; without it by address, but requests with a cookie or through an unknown proxy are refused",
        ),
        ("[principal]\nor = 'any_peer'", "a digest of `authorization`; without it by address"),
        ("[principal]\nfrom = 'peer'", "address"),
        ("[principal]\nfrom = 'shared'", "nothing: all callers are one"),
        (
            "[principal]\nfrom = 'cookie'\ncookie = 'Session'",
            "a digest of the cookie `Session`; a request without it is refused",
        ),
        (
            "[principal]\nor = 'cookie'\ncookie = 'sid'",
            "a digest of `authorization`; without it by a digest of the cookie `sid`; a request without it is refused",
        ),
        (
            "[principal]\nfrom = 'header'\nheader = 'X-Api-Key'\nor = 'shared'",
            "a digest of `x-api-key`; without it by nothing: all callers are one",
        ),
    ] {
        assert_eq!(told(rest), words, "{rest}");
    }
}

#[test]
fn h31_each_host_has_keys_of_its_own_unless_the_file_says_otherwise() {
    let hosts = |rest: &str| settings(rest).http.hosts;
    assert_eq!(hosts(""), Hosts::separate());
    assert_eq!(hosts("[key]\nhosts = 'ignored'"), Hosts::ignored());
    let same = Hosts::separate().same(["api.example", "www.example"]).expect("is fine");
    assert_eq!(hosts("[key]\nsame_hosts = [['api.example', 'WWW.example.']]"), same);
    let identity = |word: &str| settings(&format!("[key]\nidentity = '{word}'")).http.key_identity;
    assert_eq!(settings("").http.key_identity, KeyIdentity::Full);
    assert_eq!(
        ["full", "upgrade", "0.1"].map(identity),
        [KeyIdentity::Full, KeyIdentity::Upgrade, KeyIdentity::V0_1]
    );
}

#[test]
fn h53_a_run_without_a_known_end_is_held_unless_the_file_says_otherwise() {
    assert_eq!(settings("").http.profile.rules.lapse, Lapse::Hold);
    assert_eq!(settings("profile = 'stripe'").http.profile.rules.lapse, Lapse::Hold);
    assert_eq!(settings("[rules]\nlapse = 'rerun'").http.profile.rules.lapse, Lapse::Rerun);
    // The engine's own default is another: an embedded caller sees the attempt number, and can act on it.
    assert_eq!(Lapse::default(), Lapse::Rerun);
}

/// The four lines of `--check` for a file with these lines.
fn summed_up(rest: &str) -> Vec<String> {
    let config = parsed(&format!("{UPSTREAM}{rest}")).expect("is TOML");
    let effective = config.effective().unwrap_or_else(|errors| panic!("{errors}"));
    effective.lines().map_while(|line| line.strip_prefix("# ").map(str::to_owned)).collect()
}

#[test]
fn what_a_proxy_will_do_is_said_in_four_lines() {
    assert_eq!(
        summed_up(""),
        [
            "listening on http://127.0.0.1:8080, proxying to http://127.0.0.1:3000/; health, metrics and the dashboard on http://127.0.0.1:9464",
            "store: file:./semel-data; outcomes survive kill -9, a crash of the machine, and loss of power, if the file system keeps what is synced",
            "callers: told apart by a digest of `authorization`; without it by address, but requests with a cookie or through an unknown proxy are refused; each host has keys of its own",
            "after a crash: a key whose run has no known end is held until an operator decides (lapse = \"hold\")",
        ]
    );
    let lines = summed_up(
        "store = 'memory:'\nadmin = 'off'\n[principal]\nfrom = 'shared'\n[key]\nhosts = 'ignored'\n[rules]\nlapse = 'rerun'
        [[route]]\npath = '/charges'\nlapse = 'hold'\n[[route]]\npath = '/notes'\nmethods = ['PUT']",
    );
    assert_eq!(
        lines,
        [
            "listening on http://127.0.0.1:8080, proxying to http://127.0.0.1:3000/",
            "store: memory:; outcomes survive nothing: they end with the process",
            "callers: told apart by nothing: all callers are one",
            "after a crash: a key whose run has no known end runs again with the next retry (lapse = \"rerun\"); hold on POST/PATCH /charges",
        ]
    );
    let probed = summed_up(
        "[rules]\nprobe = { path = '/found?key={key}', headers = ['Authorization'] }
        [[route]]\npath = '/notes'\nmethods = ['PUT']\nprobe = 'off'\nlapse = 'rerun'\n[[route]]\npath = '/charges'\nprobe = 'off'",
    );
    assert_eq!(
        probed[3],
        "after a crash: the upstream is asked what became of a run that has no known end, and the key is held if it cannot say \
         (probe = { path = \"/found?key={key}\", headers = [\"authorization\"], timeout = \"5s\" }); \
         hold on POST/PATCH /charges; rerun on PUT /notes"
    );
    let route = |number| format!("[[route]]\npath = '/r{number}'\nmethods = ['POST']\nlapse = 'rerun'\n");
    let many = summed_up(&[1, 2, 3, 4, 5].map(route).concat());
    assert!(
        many[3].ends_with("(lapse = \"hold\"); rerun on POST /r1, POST /r2, POST /r3 and 2 more"),
        "{many:?}"
    );
}

#[test]
fn every_rule_can_be_said_and_a_route_inherits_what_it_does_not_say() {
    let settings = settings(
        "[rules]
        methods = ['POST', 'PUT']
        key = 'required'
        scope = 'route'
        lease = '30s'
        retention = '7d'
        lapse = 'hold'
        attempts_max = 3
        on_server_error = 'hold'
        statuses_not_kept = [404]
        request_bytes_max = '64KiB'
        response_bytes_max = 1000
        headers_kept = ['Content-Type']
        fields_left_out = ['$.client_time']
        while_running = { wait = '10s' }
        on_outage = 'open'
        [[route]]
        path = '/charges/{id}'
        methods = ['DELETE']
        attempts_max = 'unbounded'
        headers_kept = 'all'
        while_running = 'reject'
        lease = '1h30m'",
    );
    let rules = &settings.http.profile.rules;
    assert_eq!(
        (&rules.methods[..], rules.key, rules.scope),
        (&[Method::POST, Method::PUT][..], KeyPresence::Required, KeyScope::Route)
    );
    assert_eq!(
        (rules.lease, rules.retention, rules.lapse),
        (Duration::from_secs(30), Duration::from_hours(168), Lapse::Hold)
    );
    assert_eq!((rules.attempts_max, rules.on_server_error), (Some(3), OnServerError::Hold));
    assert_eq!(
        (&rules.statuses_not_kept[..], rules.on_outage),
        (&[StatusCode::NOT_FOUND][..], OnOutage::Open)
    );
    assert_eq!((rules.request_bytes_max, rules.response_bytes_max), (64 << 10, 1000));
    assert_eq!(rules.while_running, WhileRunning::Wait(Duration::from_secs(10)));
    assert_eq!((rules.headers_kept.as_ref().map(Vec::len), rules.fields_left_out.len()), (Some(1), 1));
    let [route] = &settings.http.routes[..] else { panic!("{:?}", settings.http.routes) };
    assert_eq!((route.path.as_str(), &route.rules.methods[..]), ("/charges/{id}", &[Method::DELETE][..]));
    assert_eq!((route.rules.attempts_max, route.rules.headers_kept.is_none()), (None, true));
    assert_eq!(
        (route.rules.while_running, route.rules.lease),
        (WhileRunning::Reject, Duration::from_mins(90))
    );
    assert_eq!((route.rules.lapse, route.rules.key), (Lapse::Hold, KeyPresence::Required), "inherited");
}

#[test]
fn a_profile_is_data_that_a_file_can_spell_out() {
    let stripe = settings("profile = 'stripe'");
    let spelt = settings("[statuses]\nmismatch = 400\n[rules]\non_server_error = 'store'\n");
    assert_eq!(format!("{:?}", stripe.http.profile), format!("{:?}", Profile::stripe()));
    assert_eq!(format!("{:?}", spelt.http.profile), format!("{:?}", Profile::stripe()));
    let own = settings(
        "problem_base = 'https://errors.example/'
        [headers]
        key = 'X-Request-Id'
        aliases = ['Idempotency-Key']
        replayed = 'X-Replayed'
        expires = 'off'
        protected = 'X-Protected'
        [key]
        unquoted = 'refused'
        chars_max = 64",
    );
    let profile = own.http.profile;
    assert_eq!((profile.names.key.as_str(), profile.names.key_aliases.len()), ("x-request-id", 1));
    assert_eq!(
        (profile.names.expires, profile.key.unquoted, profile.key.chars_max),
        (None, UnquotedKeys::Refused, 64)
    );
    assert_eq!(&*profile.problem_base, "https://errors.example/");
    assert_eq!(profile.statuses.of(Code::Mismatch), StatusCode::UNPROCESSABLE_ENTITY);
}

#[test]
fn what_the_process_may_use_is_said_with_units() {
    let settings = settings(
        "listen = 'localhost:80'\naccess_log = 'json'\nupstream_version = '2'\nunderscores_in_headers = 'pass'\nadmin = 'off'\nscope_prefix = ['acme', 'payments']
        [quotas]
        new_keys_per_minute = 600
        bytes = '1GiB'
        [bounds]
        held_bytes_max = '32MiB'
        caller_held_bytes_max = '2MiB'
        streams_max = 7
        [timeouts]
        store = '250ms'
        drain = '0s'",
    );
    assert_eq!((settings.listener.listen.to_string(), settings.admin), ("127.0.0.1:80".into(), None));
    assert_eq!((settings.access_log, settings.upstream_version), (AccessLog::Json, UpstreamVersion::Http2));
    assert_eq!(settings.underscores_in_headers, UnderscoresInHeaders::Pass);
    assert_eq!(settings.http.scope, ["acme", "payments"]);
    let quotas = settings.http.quotas.expect("are said");
    assert_eq!((quotas.new_keys_per_minute, quotas.records, quotas.bytes), (Some(600), None, Some(1 << 30)));
    assert_eq!((settings.http.held_bytes_max, settings.listener.limits.streams_max), (32 << 20, 7));
    assert_eq!(settings.http.caller_held_bytes_max, Some(2 << 20));
    assert_eq!(settings.http.store_timeout, Duration::from_millis(250));
    assert_eq!(settings.listener.timeouts.drain, Duration::ZERO);
}

#[test]
fn everything_wrong_is_told_at_once_with_its_line_in_the_order_of_the_file() {
    let errors = parsed("lisen = ':80'\n[rules]\nlease = '25h'\n[[route]]\npath = 'a'\nkey = 'needed'\n")
        .and_then(|config| config.settings())
        .expect_err("is wrong");
    let lines: Vec<_> = errors.faults().iter().map(semel_config::Fault::line).collect();
    assert_eq!(lines, [Some(1), Some(3), Some(5), Some(6), None]);
    assert!(
        errors
            .to_string()
            .starts_with("semel.toml:1:1: `lisen` is no setting here; did you mean `listen`?\n"),
        "{errors}"
    );
}

/// What cannot be, and a part of what is said to it.
const REFUSED: &[(&str, &str)] = &[
    (
        "listen = '8080'",
        "semel.toml:2:10: `listen` is \"8080\", no address to listen on; write \"127.0.0.1:8080\"",
    ),
    ("listen = 8080", "`listen` is a number; write text in quotes"),
    (
        "listen = '127.0.0.1:3000'",
        "semel.toml:1:12: `upstream` is 127.0.0.1:3000, where the proxy itself listens",
    ),
    ("admin = '127.0.0.1:8080'", "where clients come; give it another port"),
    ("admin = '0.0.0.0:9464'", "admin_public = true"),
    ("store = 'mysql://db'", "there is no store for `mysql:`"),
    ("store = { env = 'SEMEL_NOT_SET_ANYWHERE' }", "SEMEL_NOT_SET_ANYWHERE, which is not set"),
    ("store = { file = 'no/such/file' }", "\"no/such/file\", which cannot be read"),
    ("store = { url = 'x' }", "write { env = \"NAME\" } or { file = \"PATH\" }"),
    ("profile = 'striper'", "did you mean `stripe`?"),
    ("access_log = 'xml'", "write \"text\" or \"json\" or \"off\""),
    ("scope_prefix = ['1','2','3','4','5','6','7']", "6 at most"),
    ("scope_prefix = ['1','2','3','4','5','6','7','8']\n[key]\nhosts = 'ignored'", "7 at most"),
    ("upstream_authorities = 'Cargo.toml'", "is for an upstream with https"),
    ("[tls]\ncertificate = 'Cargo.toml'", "semel.toml:2:1: `key` is missing"),
    (
        "[tls]\ncertificate = 'a.pem'\nkey = 'Cargo.toml'",
        "semel.toml:3:15: `certificate` is \"a.pem\", and there is no such file",
    ),
    (
        "[principal]\nfrom = 'session'",
        "write \"authorization\" or \"header\" or \"cookie\" or \"peer\" or \"jwt\" or \"shared\"",
    ),
    ("[principal]\nfrom = 'cookie'", "semel.toml:2:1: `cookie` is missing: which one?"),
    ("[principal]\ncookie = 'sid'", "does nothing without from = \"cookie\""),
    ("[principal]\nfrom = 'cookie'\ncookie = 'a b'", "not the name of a cookie"),
    ("[principal]\nfrom = 'cookie'\ncookie = 'a'\nor = 'cookie'", "names the cookie again"),
    ("[key]\nhosts = 'all'", "write \"separate\" or \"ignored\""),
    ("[key]\nhosts = 'ignored'\nsame_hosts = [['a', 'b']]", "does nothing with hosts = \"ignored\""),
    ("[key]\nsame_hosts = [['a']]", "fewer than two hosts"),
    ("[key]\nsame_hosts = ['a', 'b']", "`same_hosts`"),
    ("[key]\nsame_hosts = [['a', 'b'], ['B', 'c']]", "`b` is named twice"),
    ("[key]\nsame_hosts = [['http://a', 'b']]", "`http://a` is not a host name"),
    ("[key]\nidentity = 'old'", "write \"full\" or \"upgrade\" or \"0.1\""),
    ("[principal]\nfrom = 'header'", "`header` is missing: which one?"),
    ("[principal]\nheader = 'x-api-key'", "does nothing without from = \"header\""),
    ("[principal]\nfrom = 'jwt'", "`algorithm` is missing"),
    ("[principal]\nfrom = 'jwt'\nalgorithm = 'RS256'", "needs a public key"),
    (
        "[principal]\nfrom = 'jwt'\nalgorithm = 'HS256'\npublic_key_file = 'Cargo.toml'",
        "does not go with HS256",
    ),
    (
        "[principal]\nfrom = 'jwt'\nalgorithm = 'RS256'\npublic_key_file = 'Cargo.toml'",
        "semel.toml:5:19: `public_key_file` cannot be used",
    ),
    ("[principal]\nfrom = 'jwt'\nalgorithm = 'none'", "no algorithm that is known"),
    ("[principal]\nissuer = 'x'", "`issuer` does nothing without from = \"jwt\""),
    ("trusted_proxies = ['0.0.0.0/0']", "any client could pick who it is"),
    ("[headers]\nkey = 'Idempotency Key'", "no name of a header"),
    ("[headers]\nreplayed = 'idempotency-key'", "means something else already"),
    ("[key]\nchars_max = 2000", "write 1 to 1024"),
    ("[statuses]\nmismatch = 200", "write 400 to 599"),
    ("[rules]\nlease = '0s'", "`lease` is \"0s\"; write 1ms to 1d"),
    ("[rules]\nretention = '200y'", "write \"500ms\""),
    ("[rules]\nattempts_max = 0", "write 1 to 4294967295"),
    (
        "[rules]\nprobe = '/charges'",
        "write { path = \"/charges?key={key}\", headers = [\"authorization\"] }, or \"off\"",
    ),
    ("[rules]\nprobe = { headers = [] }", "semel.toml:3:9: `probe` has no `path`"),
    (
        "[rules]\nprobe = { path = '/a/{key}' }",
        "by which headers of the client does the upstream tell callers apart?",
    ),
    ("[rules]\nprobe = { path = '/a', headers = [] }", "without the key that is asked for"),
    ("[rules]\nprobe = { path = '/a/{id}', headers = [] }", "there are {key} and {path}"),
    ("[rules]\nprobe = { path = '/a/{key}', headers = [], method = 'POST' }", "has the field `method`"),
    (
        "[rules]\nprobe = { path = '/a/{key}', headers = ['Host'] }",
        "holds \"host\", which a probe cannot take over",
    ),
    ("[rules]\nprobe = { path = '/a/{key}', headers = ['x-forwarded-for'] }", "a probe cannot take over"),
    ("[rules]\nprobe = { path = '/a/{key}', headers = [], timeout = '1h' }", "write 1ms to 5m"),
    (
        "[rules]\nlapse = 'rerun'\nprobe = { path = '/a/{key}', headers = [] }",
        "semel.toml:3:9: `lapse` cannot be: with a probe",
    ),
    (
        "[rules]\nprobe = { path = '/a/{key}', headers = [] }\n[[route]]\npath = '/b'\nlapse = 'rerun'",
        "semel.toml:6:9: `lapse` cannot be: with a probe",
    ),
    ("probe = 'off'", "it belongs in [rules] or in a [[route]]"),
    ("[bounds]\nprobes_in_flight_max = 0", "`probes_in_flight_max` is 0"),
    ("[rules]\nmethods = ['GET']", "which passes untouched"),
    ("[rules]\nstatuses_not_kept = [503]", "up to `on_server_error`"),
    ("[rules]\nfields_left_out = ['client_time']", "it begins with `$`, as in `$.client_time`"),
    ("[rules]\nrequest_bytes_max = '512MiB'", "raise held_bytes_max"),
    ("[bounds]\ncaller_held_bytes_max = '1000KiB'", "caller_held_bytes_max if it is set"),
    ("[rules]\nwhile_running = 'wait'", "write \"reject\" or { wait = \"10s\" }"),
    (
        "[[route]]\npath = '/a'\n[[route]]\npath = '/a'",
        "semel.toml:5:8: `path` is \"/a\", which has a route for POST already",
    ),
    ("[[route]]\npath = '/{a}'\n[[route]]\npath = '/{b}'", "clashes with \"/{a}\""),
    ("[[route]]\npath = '/{'", "no pattern"),
    ("[[route]]\nmethods = ['PUT']", "semel.toml:2:1: `path` is missing"),
    ("[route]\npath = '/a'", "write `[[route]]` for each"),
    ("rules = 7", "write a table: `[rules]`"),
    ("[bounds]\nlisten = '127.0.0.1:1'", "at the top of the file, before the first [table]"),
    ("[timeouts]\nresponse = 60", "in quotes: \"30s\""),
    ("[quotas]\nrecords = -1", "write 1 or more"),
    ("a = ", "semel.toml:2:"),
];

#[test]
fn each_thing_that_cannot_be_is_told_what_to_write() {
    for (rest, said) in REFUSED {
        let errors = refused(rest);
        assert!(errors.contains(said), "{rest}\n{errors}");
    }
}

#[test]
fn a_password_belongs_into_no_config_file_and_is_never_repeated() {
    for url in ["postgres://app:s3cret@db/semel", "redis://:s3cret@db", "postgres://db/x?password=s3cret"] {
        let errors = refused(&format!("store = '{url}'"));
        assert!(errors.contains("holds a password") && errors.contains("env = "), "{errors}");
        assert!(!errors.contains("s3cret"), "{errors}");
    }
    let folder = tempfile::tempdir().expect("a folder for a test");
    let file = folder.path().join("store-url");
    std::fs::write(&file, "postgres://app:s3cret@db/semel\n").expect("is written");
    let text = format!("{UPSTREAM}store = {{ file = '{}' }}", file.display());
    let config = parsed(&text).expect("is TOML");
    assert_eq!(config.settings().expect("is fine").store.to_string(), "postgres://app:***@db/semel");
    let effective = config.effective().expect("is fine");
    assert!(effective.contains("file = ") && !effective.contains("s3cret"), "{effective}");
}

#[test]
fn the_command_line_goes_before_the_file_and_the_file_before_the_environment() {
    let text = format!(
        "{UPSTREAM}listen = '127.0.0.1:1'\nstore = 'file:a'\nadmin = '127.0.0.1:2'\nprofile = 'ietf'\naccess_log = 'text'"
    );
    let file = parsed(&text).expect("is TOML");
    let variable = Some(("SEMEL_STORE", "file:c".parse().expect("is fine")));
    let overrides = Overrides {
        upstream: Some(Overrides::upstream("http://127.0.0.1:9").expect("is fine")),
        listen: Some(semel_config::value::address("127.0.0.1:10").expect("is fine")),
        store: StoreOverrides { store: Some("file:b".parse().expect("is fine")), variable: variable.clone() },
        admin: Some(Admin::Off),
        admin_public: false,
        tokens: None,
        tokens_check: None,
        audit: None,
        profile: Some(Named::Stripe),
        access_log: Some(AccessLog::Off),
    };
    let settings = file.clone().with_overrides(overrides).settings().expect("is fine");
    assert_eq!(
        (settings.upstream.port_u16(), settings.listener.listen.port(), settings.admin),
        (Some(9), 10, None)
    );
    assert_eq!((settings.store.to_string(), settings.access_log), ("file:b".into(), AccessLog::Off));
    assert_eq!(settings.http.profile.statuses.of(Code::Mismatch), StatusCode::BAD_REQUEST);
    let variable = Overrides { store: StoreOverrides { store: None, variable }, ..Overrides::default() };
    let kept = file.with_overrides(variable.clone()).settings().expect("is fine");
    assert_eq!((kept.store.to_string(), kept.listener.listen.port()), ("file:a".into(), 1));
    let unsaid = parsed(UPSTREAM).expect("is TOML").with_overrides(variable).settings().expect("is fine");
    assert_eq!(unsaid.store.to_string(), "file:c");
}

#[test]
fn an_option_that_cannot_be_is_told_by_its_name() {
    let admin = Overrides { admin: Some(Admin::At(([0, 0, 0, 0], 9464).into())), ..Overrides::default() };
    let said = parsed(UPSTREAM).expect("is TOML").with_overrides(admin).settings().expect_err("is public");
    assert!(said.to_string().starts_with("--admin: is 0.0.0.0:9464"), "{said}");
    assert_eq!(said.faults()[0].line(), None);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let said = Config::read("no/such/semel.toml".as_ref()).expect_err("is not there").to_string();
    assert!(said.starts_with("no/such/semel.toml: cannot be read"), "{said}");
}

#[cfg(feature = "jwt")]
#[test]
fn the_effective_settings_are_a_file_that_means_the_same() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef").expect("is written");
    let everything = format!(
        "listen = '0.0.0.0:80'\nadmin = '0.0.0.0:1'\nadmin_public = true\naccess_log = 'json'\nunderscores_in_headers = 'pass'\nstore = 'redis://h'\nscope_prefix = ['a \"b\"']
        trusted_proxies = ['10.0.0.0/8']\nupstream_version = '2'\nprofile = 'stripe'\nproblem_base = 'urn:x:'
        [principal]\nfrom = 'jwt'\nalgorithm = 'HS256'\nsecret_file = '{}'\nissuer = 'i'\naudience = 'a'\nclaim = 'c'\nor = 'any_peer'
        [headers]\naliases = ['x-k']\nexpires = 'off'
        [key]\nunquoted = 'refused'\nsame_hosts = [['a', 'B:443']]\nidentity = 'upgrade'
        [statuses]\nin_flight = 425
        [rules]\nlease = '1d'\nattempts_max = 2\nwhile_running = {{ wait = '1m1ms' }}\nheaders_kept = ['link']\nfields_left_out = ['$.t']
        probe = {{ path = '/found?key={{key}}', headers = ['Authorization', 'x-tenant'], timeout = '2s' }}
        [[route]]\npath = '/b'\nprobe = 'off'\nlapse = 'rerun'
        [[route]]\npath = '/a'\nkey = 'required'\nattempts_max = 'unbounded'\nheaders_kept = 'all'\nwhile_running = 'reject'\nfields_left_out = []
        [[route]]\npath = '/a'\nmethods = ['PUT']\nrequest_bytes_max = 0
        [quotas]\nrecords = 5\nbytes = 1025
        [tls]\ncertificate = 'Cargo.toml'\nkey = 'src/lib.rs'
        [bounds]\nheld_bytes_max = '64MiB'\ncaller_held_bytes_max = '8MiB'
        [timeouts]\nstore = '10ms'",
        secret.display()
    );
    for rest in [
        "",
        "profile = 'stripe'",
        "[principal]\nfrom = 'header'\nheader = 'x-api-key'",
        "[principal]\nfrom = 'shared'",
        "[principal]\nfrom = 'cookie'\ncookie = 'Session'",
        "[key]\nhosts = 'ignored'",
        "admin = 'off'",
        &everything,
    ] {
        let first = parsed(&format!("{UPSTREAM}{rest}")).expect("is TOML");
        let effective = first.effective().unwrap_or_else(|errors| panic!("{errors}"));
        let second = parsed(&effective).expect("is TOML");
        let meant = |config: &Config| {
            format!("{:?}", config.settings().unwrap_or_else(|errors| panic!("{errors}\n{effective}")))
        };
        assert_eq!(meant(&first), meant(&second), "{effective}");
        assert_eq!(second.effective().expect("is fine"), effective);
        assert!(!effective.contains("0123456789abcdef"), "{effective}");
    }
}
