//! `cargo xtask servers`: the throwaway servers that tests share, for whoever runs tests by hand.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, ensure};
use xtask::needs;
use xtask::run::{Run, cargo, program};

/// Start PostgreSQL, Redis, a Redis Cluster, NATS and RabbitMQ, and say where they are.
///
/// They run until Ctrl-C or the end of input, on ports of their own on 127.0.0.1, with durable settings, and nothing is
/// left of them. Tests that find the printed variables in their environment use these servers; the others start their own.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<()> {
    needs::for_tests()?;
    cargo(["run", "--quiet", "--package", "test-services"]).pass()
}

/// One of each, in a process of their own; stopped and gone when dropped.
pub(crate) struct Servers {
    process: Child,
    /// The variables that tests look for, and where the servers are.
    variables: Vec<(String, String)>,
}

impl Servers {
    /// Starts them with the program that the tests' build has built.
    pub(crate) fn start(test_services: &Path) -> Result<Self> {
        let mut command = program(test_services, [] as [&str; 0]).into_command();
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = process.stdout.take().context("the servers have no output")?;
        let mut servers = Self { process, variables: Vec::new() };
        for line in BufReader::new(output).lines() {
            let line = line?;
            let Some((name, url)) = line.strip_prefix("export ").and_then(|line| line.split_once('=')) else {
                break;
            };
            servers.variables.push((name.to_owned(), url.to_owned()));
        }
        ensure!(!servers.variables.is_empty(), "the servers do not start: cargo xtask servers says why");
        Ok(servers)
    }

    /// The same program, with their variables.
    pub(crate) fn name_to(&self, run: Run) -> Run {
        self.variables.iter().fold(run, |run, (name, url)| run.env(name, url))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // The end of its input ends it, and it stops its servers.
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}
