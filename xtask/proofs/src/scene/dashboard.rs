//! `dashboard`: a server in memory with a day's work in it, to look at its pages.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use semel::Outcome;
use semel_server::serve::{Server, ServerSettings};
use semel_stream::{Pipeline, Position, dead_letter};
use test_http::blocking::Client;

use super::data::{bustle, fill};

/// Start a claim server in memory with a day's work in it, and go on claiming while it runs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where it listens.
    #[arg(default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// How many records it has at first.
    #[arg(default_value_t = 2_000)]
    records: usize,
}

/// Runs until it is ended.
pub fn dashboard(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut settings = ServerSettings::in_memory();
    settings.listener.listen = args.listen;
    let server = runtime.block_on(Server::start(settings))?;
    runtime.block_on(async {
        let pipeline = Pipeline::builder(&server.served().semel, "order-mails").scope(["acme"]).build()?;
        let events = (0..240).map(|number| (format!("order.paid/{number}"), Outcome::success("mailed")));
        let _ = pipeline.record(events).await?;
        let _ = pipeline.record([("order.paid/977", dead_letter(5, "no such mailbox"))]).await?;
        let reader = pipeline.take("orders/0").await?;
        reader.commit(Position::new(48_113), Some("order.paid/977")).await
    })?;
    let mut client = Client::new(server.listening());
    fill(&mut client, args.records)?;
    println!("http://{}", server.listening());
    for round in 0.. {
        bustle(&mut client, round)?;
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}
