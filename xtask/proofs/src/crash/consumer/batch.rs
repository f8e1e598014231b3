//! The events of one go, published, with the folder in which everything about them is.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::judge::Place;
use super::life;
use super::scene::{Scene, Source, Store};
use super::world::World;
use crate::dice::Dice;

/// So many of a hundred events are followed by one that was there before.
const DUPLICATES_PERCENT: usize = 20;

/// Events that a pipeline of their own processes.
pub(super) struct Batch {
    pub(super) events: u64,
    /// Every delivery, in order.
    pub(super) stream: Vec<Place>,
    /// A folder, or the URL of a server.
    pub(super) store: String,
    /// A file, or where the events were published to.
    pub(super) origin: String,
    pub(super) pipeline: String,
    /// Where plain effects go.
    pub(super) effects: PathBuf,
    /// Where victims complain.
    pub(super) complaints: PathBuf,
}

impl Batch {
    /// Publishes so many events, and some of them again.
    pub(super) fn publish(
        world: &World,
        scene: Scene,
        name: &str,
        events: u64,
        dice: &mut Dice,
    ) -> Result<Self> {
        let folder = world.folder().join(name);
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let file = folder.join("events.jsonl");
        let (text, stream) = written(scene.source, &order(events, dice));
        fs::write(&file, text)?;
        let origin = match scene.source {
            Source::Lines => file.display().to_string(),
            Source::Nats => format!("{}/{name}", world.nats.url()),
            Source::RabbitMq => format!("{}#{name}", world.rabbitmq.url()),
        };
        if scene.source != Source::Lines {
            life::publish(world, &origin, &file)?;
        }
        let store = match scene.store {
            Store::File => folder.join("store").display().to_string(),
            Store::Postgres => world.postgres.url(),
        };
        let (effects, complaints) = (folder.join("effects"), folder.join("complaints"));
        Ok(Self { events, stream, store, origin, pipeline: name.to_owned(), effects, complaints })
    }

    /// Everything about it is fine, and in the way.
    pub(super) fn remove(&self) -> Result<()> {
        let folder = self.effects.parent().context("a batch without a folder")?;
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
    }

    /// Where the stream ends.
    pub(super) fn end(&self) -> Option<u64> {
        self.stream.last().map(|place| place.position)
    }
}

/// Which event each delivery is of.
fn order(events: u64, dice: &mut Dice) -> Vec<u64> {
    let mut order = Vec::new();
    for event in 0..events {
        order.push(event);
        if dice.happens(DUPLICATES_PERCENT) {
            order.push(dice.number(event));
        }
    }
    order
}

/// The lines of a stream, and where each of them ends.
fn written(source: Source, order: &[u64]) -> (String, Vec<Place>) {
    let (mut text, mut stream) = (String::new(), Vec::new());
    for (line, event) in (1..).zip(order) {
        text.extend(["{\"id\":", &event.to_string(), "}\n"]);
        let position = match source {
            Source::Lines => text.len() as u64,
            Source::Nats | Source::RabbitMq => line,
        };
        stream.push(Place { event: *event, position });
    }
    (text, stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_every_event_and_some_of_them_again() {
        let order = order(200, &mut Dice::new(3));
        assert!((0..200).all(|event| order.contains(&event)));
        assert!(order.len() > 210 && order.len() < 290, "{}", order.len());
        let (text, stream) = written(Source::Lines, &order);
        assert_eq!(stream.last().map(|place| place.position), Some(text.len() as u64));
        assert_eq!(text.lines().count(), stream.len());
        assert_eq!(written(Source::Nats, &order).1.last().unwrap().position, order.len() as u64);
    }
}
