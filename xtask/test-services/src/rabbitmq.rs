//! One RabbitMQ server, and the daemon that Erlang's nodes find each other by.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::place::{Place, find_program, is_program};
use crate::process::Process;

/// How often another port is tried if somebody took ours between a look and the start.
const STARTS: u32 = 5;
/// What it says when it takes connections.
const READY: &str = "Server startup complete";
/// The server itself. What is on the path is a script of its package, which insists on a user and on folders of its own.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// Nodes of Erlang also talk to each other; this one has nobody to talk to.
const ERLANG_ARGS: &str = "-kernel inet_dist_use_interface {127,0,0,1}";

/// A RabbitMQ server with a folder and ports of its own. Dropped, it is stopped, and its folder gone.
#[derive(Debug)]
pub struct RabbitMq {
    process: Process,
    /// Erlang's port mapper. Of our own, because one that the server starts would outlive it.
    mapper: Process,
}

impl RabbitMq {
    /// Starts a server that knows the user `guest`, and listens on 127.0.0.1 alone. Takes some seconds.
    pub fn start() -> Result<Self> {
        for _ in 1..STARTS {
            let mut server = Self::prepare()?;
            match server.resume() {
                Ok(()) => return Ok(server),
                Err(_) if server.process.place.lost_its_port() || server.mapper.place.lost_its_port() => {}
                Err(error) => return Err(error),
            }
        }
        let mut server = Self::prepare()?;
        server.resume()?;
        Ok(server)
    }

    fn prepare() -> Result<Self> {
        // A kill is as good a stop as any: what they have is not needed any more.
        let process = Process::new(Place::take_for_cluster()?, "KILL")?;
        let mapper = Process::new(Place::take()?, "KILL")?;
        process.place.write("plugins", "[].\n")?;
        Ok(Self { process, mapper })
    }

    /// Where it is: `amqp://guest:guest@127.0.0.1:PORT/%2f`.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port())
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.process.place.port
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.process.place.folder
    }

    /// Stops it as its service would: what it has in memory is written.
    pub fn stop(&mut self) -> Result<()> {
        self.process.stop(Signal::TERM)
    }

    /// Kills it and whatever it started.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again on the same folder and ports, and waits until it has read its files and takes connections.
    pub fn resume(&mut self) -> Result<()> {
        self.start_mapper()?;
        let place = self.process.place.clone();
        let command = self.command()?;
        let log_bytes = place.log_bytes();
        self.process.start(command, |_| Ok(place.has_said(READY, log_bytes)))
    }

    fn start_mapper(&mut self) -> Result<()> {
        if self.mapper.is_running() {
            return Ok(());
        }
        let place = self.mapper.place.clone();
        let mut command = place.user.command(&mapper_program()?);
        command.args(["-address", "127.0.0.1", "-port"]).arg(place.port.to_string());
        let port = place.port;
        // It says nothing. Somebody else's answer would do no harm: the server would refuse to start.
        self.mapper.start(command, |_| Ok(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()))
    }

    fn command(&self) -> Result<Command> {
        let place = &self.process.place;
        let mut command = place.user.command(&program()?);
        let folder = |name: &str| place.folder.join(name);
        command
            .env("HOME", &place.folder)
            .env("RABBITMQ_MNESIA_BASE", folder("mnesia"))
            .env("RABBITMQ_LOG_BASE", folder("logs"))
            // Its log goes to its output, which we have anyway.
            .env("RABBITMQ_LOGS", "-")
            .env("RABBITMQ_CONFIG_FILE", folder("rabbitmq"))
            .env("RABBITMQ_CONF_ENV_FILE", folder("environment"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder("plugins"))
            .env("RABBITMQ_NODENAME", format!("semel-{}@localhost", place.port))
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", place.port.to_string())
            .env("RABBITMQ_DIST_PORT", place.second_port().to_string())
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", ERLANG_ARGS)
            .env("ERL_EPMD_PORT", self.mapper.place.port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            // So its script becomes the server, instead of watching over it: the process that we know is the one to kill.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env_remove("NOTIFY_SOCKET");
        Ok(command)
    }
}

fn program() -> Result<PathBuf> {
    let path = PathBuf::from(PROGRAM);
    is_program(&path).then_some(path).context("RabbitMQ is not installed: apt-get install rabbitmq-server")
}

fn mapper_program() -> Result<PathBuf> {
    find_program("epmd").context("Erlang's epmd is not installed: apt-get install erlang-base")
}
