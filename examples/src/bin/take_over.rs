//! A worker that dies half-way, and the one that goes on after it: attempts, fences and steps.

use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, Decision, Key, OnceError, Outcome, Permit, Semel};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let lease = Duration::from_millis(200);
    let semel = Semel::builder(MemoryStore::new()).lease(lease).build()?;
    let key = Key::new("ship", "order-7")?;

    let first = run(&semel, &key).await?;
    println!("first worker:  attempt {}, fence {}", first.attempt(), first.fence());
    println!("               label {}", print_label(&first).await?);
    println!("               … dies before it is done");

    if let Decision::Busy(busy) = semel.claim(Claim::new(&key)).await? {
        println!("second worker: busy for another {:?}; waits", busy.retry_after());
    }
    tokio::time::sleep(lease).await;
    let second = run(&semel, &key).await?;
    println!("second worker: attempt {}, fence {}", second.attempt(), second.fence());
    println!("               label {} (from the first attempt)", print_label(&second).await?);
    second.complete(Outcome::success("shipped")).await?;

    match first.complete(Outcome::success("shipped, too")).await {
        Ok(()) => println!("first worker:  completed a run that was not its own"),
        Err(error) => println!("first worker:  comes back and is told: {error}"),
    }
    Ok(())
}

async fn run(semel: &Semel, key: &Key) -> anyhow::Result<Permit> {
    let decision = semel.claim(Claim::new(key)).await?;
    let word = decision.as_str();
    let Decision::Run(permit) = decision else { anyhow::bail!("expected to run, was told {word}") };
    Ok(permit)
}

/// A step: printed once, however many attempts the shipment takes.
async fn print_label(permit: &Permit) -> anyhow::Result<String> {
    let label = permit.step("label", async || Ok::<_, String>(format!("L-{}", permit.attempt()))).await;
    label.map_err(|error: OnceError<String>| anyhow::anyhow!("{error}"))
}
