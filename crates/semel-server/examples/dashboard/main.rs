//! A server in memory with a day's work in it, to look at its pages: `cargo run -p semel-server --example dashboard`.
//!
//! It goes on claiming while it runs, so that the charts have something to show.

#![expect(clippy::arithmetic_side_effects, reason = "an example's numbers are small")]

mod fill;

use std::time::Duration;

use semel_server::serve::{Server, ServerSettings};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut settings = ServerSettings::in_memory();
    let mut arguments = std::env::args().skip(1);
    if let Some(listen) = arguments.next() {
        settings.listener.listen = listen.parse()?;
    }
    let records = arguments.next().map_or(Ok(2_000), |count| count.parse())?;
    let server = Server::start(settings).await?;
    let semel = server.served().semel.clone();
    fill::fill(&semel, records).await?;
    println!("http://{}", server.listening());
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    for round in 0_u64.. {
        tick.tick().await;
        fill::some_more(&semel, round).await?;
    }
    Ok(())
}
