//! Behind nginx, as Debian has it (package `nginx-light`).

use std::net::SocketAddr;
use std::process::Command;

use axum::Router;
use semel::Semel;
use semel::store::MemoryStore;
use semel_http::{IdempotencyLayer, Principal};
use tempfile::TempDir;
use test_http::{Client, Program, soon, until};
use tokio::net::{TcpListener, TcpStream};

use super::shop::{Shop, ask, assert_outlives_a_hang_up, assert_promises, charge_to, layer};

/// A reverse proxy that keeps connections to the services behind it open, in one process.
const CONFIGURATION: &str = "
daemon off;
master_process off;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path client_body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream shop {
        SERVERS
        keepalive 16;
    }
    server {
        listen LISTEN;
        location / {
            proxy_pass http://shop;
            proxy_http_version 1.1;
            proxy_set_header Connection '';
            SETTINGS
        }
    }
}
";

/// A running nginx. Dropped, it is killed.
struct Nginx {
    address: SocketAddr,
    _program: Program,
    _folder: TempDir,
}

impl Nginx {
    async fn start(servers: &[SocketAddr], settings: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let servers =
            servers.iter().map(|server| format!("server {server} max_fails=0;")).collect::<Vec<_>>();
        let configuration = CONFIGURATION
            .replace("SERVERS", &servers.join(" "))
            .replace("LISTEN", &address.to_string())
            .replace("SETTINGS", settings);
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        // Debian keeps it where only root's path leads.
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("nginx");
        command.env("PATH", path).arg("-e").arg("stderr").arg("-p").arg(folder.path()).arg("-c").arg(&file);
        let mut program = Program::start(&mut command)
            .expect("nginx is there: `cargo xtask test` installs it (Debian's package nginx-light)");
        until("nginx to listen", async || {
            assert!(program.is_running(), "nginx ended:\n{}", program.tail());
            TcpStream::connect(address).await.ok()
        })
        .await;
        Self { address, _program: program, _folder: folder }
    }
}

#[tokio::test]
async fn promises_hold_behind_nginx_and_a_client_that_hangs_up_on_it_stops_nothing() {
    let (shop, layer) = (Shop::new(), layer());
    let at = shop.serve(shop.routes().layer(layer.clone())).await;
    let nginx = Nginx::start(&[at], "").await;
    assert_promises(nginx.address, "/charges", &shop).await;
    assert_outlives_a_hang_up(nginx.address, "/slow", &shop, &layer).await;
}

/// Serves a shop whose callers are known by their address.
async fn serve_by_address(shop: &Shop, principal: Principal) -> SocketAddr {
    let layer = IdempotencyLayer::new(Semel::new(MemoryStore::new()), principal);
    shop.serve(shop.routes().layer(layer)).await
}

/// A charge from another address of this machine, with whatever it claims to be forwarded for.
async fn charge_from(from: [u8; 4], nginx: &Nginx, forwarded_for: &str) -> test_http::Answer {
    let request = charge_to("/charges", "k").without_caller().header("x-forwarded-for", forwarded_for);
    Client::connect_from(from, nginx.address).await.send(&request).await
}

const FORWARDED_FOR: &str = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;";

#[tokio::test]
async fn callers_by_address_are_told_apart_behind_a_trusted_nginx() {
    let shop = Shop::new();
    let trusted = vec!["127.0.0.1/32".parse().unwrap()];
    let at = serve_by_address(&shop, Principal::peer_address_behind(trusted)).await;
    let nginx = Nginx::start(&[at], FORWARDED_FOR).await;
    let first = charge_from([127, 0, 0, 2], &nginx, "10.0.0.1").await;
    first.ran(201);
    // What a client claims about itself changes nothing.
    charge_from([127, 0, 0, 2], &nginx, "10.0.0.9").await.replays(&first);
    let forged = charge_from([127, 0, 0, 3], &nginx, "127.0.0.2").await;
    assert_ne!(forged.ran(201).body, first.body);
    assert_eq!(shop.charges(), 2);
}

/// The mistake that `peer_address_behind` avoids: everyone behind nginx has its address, and is one caller.
#[tokio::test]
async fn without_trust_in_nginx_all_clients_behind_it_are_one_caller() {
    let shop = Shop::new();
    let at = serve_by_address(&shop, Principal::peer_address()).await;
    let nginx = Nginx::start(&[at], FORWARDED_FOR).await;
    let first = charge_from([127, 0, 0, 2], &nginx, "").await;
    charge_from([127, 0, 0, 3], &nginx, "").await.replays(&first);
}

#[tokio::test]
async fn a_lone_peer_address_refuses_the_clients_of_a_proxy_that_is_not_trusted() {
    let shop = Shop::new();
    let at = serve_by_address(&shop, Principal::lone_peer_address(Vec::new())).await;
    let nginx = Nginx::start(&[at], FORWARDED_FOR).await;
    charge_from([127, 0, 0, 2], &nginx, "").await.refused(400, "caller_unknown");
    assert_eq!(shop.charges(), 0);
    let trusted = vec!["127.0.0.1/32".parse().unwrap()];
    let at = serve_by_address(&shop, Principal::lone_peer_address(trusted)).await;
    let nginx = Nginx::start(&[at], FORWARDED_FOR).await;
    charge_from([127, 0, 0, 2], &nginx, "").await.ran(201);
    charge_from([127, 0, 0, 3], &nginx, "").await.ran(201);
}

/// nginx repeats a POST only where it is asked to. The layer makes that safe: instances share a store.
#[tokio::test]
async fn a_request_that_nginx_repeats_at_another_instance_runs_once() {
    let (shop, layer) = (Shop::new(), layer());
    let app = || -> Router { shop.routes().layer(layer.clone()) };
    let instances = [shop.serve(app()).await, shop.serve(app()).await];
    let settings = "proxy_read_timeout 2s; proxy_next_upstream error timeout non_idempotent;";
    let nginx = Nginx::start(&instances, settings).await;
    // One instance runs it, and takes too long for nginx; the other one refuses to run it a second time.
    ask(nginx.address, &charge_to("/slow", "k")).await.refused(409, "in_flight");
    shop.slow_charge_began().await;
    shop.let_one_end();
    soon("the run to end", layer.none_running()).await;
    let retry = ask(nginx.address, &charge_to("/slow", "k")).await;
    assert!(retry.is_replay() && retry.status == 201, "{retry:?}");
    assert_eq!(shop.charges(), 1);
}
