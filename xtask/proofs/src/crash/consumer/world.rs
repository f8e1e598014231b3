//! What all scenes share: the victim's program, a folder, and the servers.

use std::path::{Path, PathBuf};

use anyhow::Result;
use test_services::{Nats, Postgres, RabbitMq};

use super::life;
use crate::crash::place;

/// Everything there is to a proof, started once.
pub(super) struct World {
    pub(super) program: PathBuf,
    pub(super) place: place::Place,
    pub(super) postgres: Postgres,
    pub(super) nats: Nats,
    pub(super) rabbitmq: RabbitMq,
}

impl World {
    pub(super) fn build(program: PathBuf) -> Result<Self> {
        let world = Self {
            program,
            place: place::Place::take()?,
            // The processes die, and no machine.
            postgres: Postgres::start_in_memory(&[])?,
            nats: Nats::start()?,
            rabbitmq: RabbitMq::start()?,
        };
        life::prepare(&world)?;
        Ok(world)
    }

    pub(super) fn folder(&self) -> &Path {
        self.place.path()
    }
}
