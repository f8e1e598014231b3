//! What `cargo xtask crash` can be asked for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;

use super::{consumer, disk, kill, power, servers, soak};

/// How often the tests of every change kill.
const KILLS_FEW: u64 = 200;
/// For how long a store is soaked, if no number is given.
const SOAK_SECONDS: u64 = 300;
/// How often they cut the power.
const CUTS_FEW: u64 = 50;

/// How often they kill and stop PostgreSQL.
const POSTGRES_FEW: u64 = 50;
/// How often they have a standby take over.
const FAILOVERS_FEW: u64 = 20;
/// How often they kill Redis.
const REDIS_FEW: u64 = 20;
/// How often they kill a master of a Redis Cluster: a failover takes seconds.
const CLUSTER_FEW: u64 = 3;
/// How often they cut off a synchronous standby: once for each way to break off the wait for it.
const STANDBY_CUTS_FEW: u64 = 3;
/// How often the network fails in other places.
const PARTITIONS_FEW: u64 = 1;
const OLD_PRIMARIES_FEW: u64 = 1;
const SENTINELS_FEW: u64 = 1;
/// How often they kill a pooler, or the server behind it.
const POOLERS_FEW: u64 = 4;
/// How often they kill a process in the middle of a transaction.
const TRANSACTIONS_FEW: u64 = 30;
/// How often they kill a consumer of a stream.
const CONSUMERS_FEW: u64 = 100;

/// Kill a store at random instants, or cut its power, and look whether it kept its word.
///
/// A victim drives a store with many callers and prints what was acknowledged. After each crash the store must hold all of it:
/// nothing lost, nothing granted twice, nothing that was never written. Choices come from the seed; what the machine does at
/// which instant does not.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// SIGKILL at random instants, round after round on one folder.
    ///
    /// The machine keeps what a killed process wrote, synced or not: whether the store syncs is what `crash power` finds
    /// out. Two more checks follow: a second process on the folder is refused, and a victim that acknowledges what it
    /// never did is found out.
    Kill {
        /// How often to kill.
        #[arg(default_value_t = KILLS_FEW)]
        rounds: u64,
        /// Where every choice comes from; default: random.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// One folder for a long time: load, sweeps, SIGKILL, and every byte verified after each; the clock goes ahead now and then.
    ///
    /// Lives are longer than in `crash kill`: segments are filled, hinted and reclaimed in each.
    Soak {
        /// For how many seconds.
        #[arg(default_value_t = SOAK_SECONDS)]
        seconds: u64,
        /// Where every choice comes from; default: random.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Power cuts on a simulated disk, which tears, reorders and loses whatever was not synced.
    ///
    /// So many random cuts of recorded runs, a tenth as many cuts during the recovery from a cut during recovery, and a tenth as
    /// many whole worlds of processes and bad networks on a machine that loses its power; and the power going after every
    /// single operation of a run. The same tests as in every change, only more; their controls, disks that lie, are among them.
    Disk {
        /// How many random cuts.
        #[arg(default_value_t = 10_000)]
        cuts: u64,
    },
    /// Damage: every byte of a log of 1 MiB is flipped, one at a time.
    ///
    /// Never a wrong byte, never a panic, and in a log that was closed never a record that is missing without a word.
    Flips {
        /// Flip every which byte only.
        #[arg(long, default_value_t = 1)]
        every: u64,
    },
    /// Power cuts at random instants: the disk as it was, mounted again and opened.
    ///
    /// The store runs on ext4 in a file on XFS, which can clone that file in one step while it is written. Needs root,
    /// loop devices, xfsprogs and e2fsprogs; where they cannot be had, it says so and is skipped. At the end, disks that lie about
    /// their syncs must be found out. A disk that loses its own volatile cache is not imitated.
    Power {
        /// How many images to take.
        #[arg(default_value_t = CUTS_FEW)]
        images: u64,
        /// Where every choice comes from; default: random.
        #[arg(long)]
        seed: Option<u64>,
        /// For itself: the folder to work in, once it has mounts of its own.
        #[arg(long, hide = true, requires = "victim")]
        inside: Option<PathBuf>,
        /// For itself: the victim, which is built by then.
        #[arg(long, hide = true)]
        victim: Option<PathBuf>,
    },
    /// PostgreSQL under load: immediate stops and SIGKILL in turn, then a start on the same folder.
    ///
    /// The callers live through it and connect again by themselves. Control: with `synchronous_commit = off` something must be
    /// found lost.
    Postgres(Rounds),
    /// PostgreSQL under load is killed, and its synchronous standby takes over.
    ///
    /// Control: with an asynchronous standby something must be found lost.
    Failover(Rounds),
    /// PostgreSQL's synchronous standby cannot be reached, and the wait for it is broken off: by `pg_cancel_backend`, by a crash
    /// of the primary, by its shutdown. Then the primary dies, and the standby takes over.
    ///
    /// What any client was shown, as done or as a replay, must be there. Control: with an asynchronous standby something must
    /// be found lost.
    StandbyCut(Rounds),
    /// The way to PostgreSQL is cut, frozen, or swallows replies; the primary becomes unreachable while its standby takes over;
    /// an asynchronous standby takes over while the old primary goes on.
    ///
    /// No ask takes longer than its limit, callers are soon served again, and no fence is given twice. Controls: a client without
    /// limits must be found waiting, and a plain sequence must be found to repeat itself.
    Partition(Rounds),
    /// A primary of PostgreSQL that was replaced comes back, first in the URL: a client that has used the new one must not ask
    /// it.
    ///
    /// Control: the old primary alone must be found to lack what was done since.
    OldPrimary(Rounds),
    /// PostgreSQL behind `PgBouncer` with transaction pooling: the pooler and the server are killed in turn.
    ///
    /// Other applications that share its sessions must find nothing left behind in them. Control: an application that leaves
    /// something behind must be found out.
    Pooler(Rounds),
    /// The master of Redis cannot be reached, by all or by its replica and the sentinel, who replace it: what is lost, and for
    /// how long no caller is served.
    ///
    /// With `min-replicas-to-write 1` a master that was replaced acknowledges nothing for long. Control: without it something must
    /// be found lost.
    Sentinel(Rounds),
    /// Redis under load is killed: with `appendfsync always`, and to see what is lost, with `everysec`.
    ///
    /// The machine keeps what a killed process wrote, synced or not: a power cut would lose more of `everysec`, up to the last
    /// second or two. Control: without an append-only file something must be found lost.
    Redis(Rounds),
    /// A master of a Redis Cluster is killed under load, and its replica takes over: how much is lost, and for how long no caller
    /// is served.
    ///
    /// A master that is cut off instead of killed acknowledges on, for up to `cluster-node-timeout`, and loses all of that: not
    /// imitated here.
    Cluster(Rounds),
    /// A process is killed somewhere between an effect in PostgreSQL and the commit that completes its record: the two must
    /// agree, every time.
    ///
    /// Control: a process that completes beside the transaction must be found out.
    Transaction(Rounds),
    /// A consumer of a stream is killed between every two of its steps: delivery, claim, effect, receipt, offset,
    /// acknowledgement, and in the middle of them.
    ///
    /// Files of lines, NATS and RabbitMQ, on the file store and on PostgreSQL. The offset never passes an event without a
    /// receipt, and nothing is acknowledged without one; in one transaction with its receipt an effect happens exactly once; a
    /// lapsed run is run again, by an attempt that says so, or held until an operator decides. Controls: consumers that commit
    /// or acknowledge first, and effects beside the transaction, must be found out.
    Consumer(Rounds),
}

/// How often, and by which choices.
#[derive(Debug, clap::Args)]
struct Rounds {
    /// How often; by default a few times, as the tests of every change do.
    rounds: Option<u64>,
    /// Where every choice comes from; default: random.
    #[arg(long)]
    seed: Option<u64>,
}

impl Rounds {
    fn run(&self, few: u64, how: fn(u64, u64) -> Result<()>) -> Result<()> {
        how(self.rounds.unwrap_or(few), seed_or_any(self.seed))
    }
}

/// Runs one kind of crash.
pub fn run(args: &Args) -> Result<()> {
    match &args.what {
        What::Kill { rounds, seed } => kill::run(*rounds, seed_or_any(*seed)),
        What::Soak { seconds, seed } => soak::run(Duration::from_secs(*seconds), seed_or_any(*seed)),
        What::Disk { cuts } => disk::cuts(*cuts),
        What::Flips { every } => disk::flips(*every),
        What::Power { images, seed, inside: Some(place), victim: Some(victim) } => {
            power::run_inside(place, victim, *images, seed_or_any(*seed))
        }
        What::Power { images, seed, .. } => power::run(*images, seed_or_any(*seed)),
        What::Postgres(rounds) => rounds.run(POSTGRES_FEW, servers::postgres),
        What::Failover(rounds) => rounds.run(FAILOVERS_FEW, servers::failover),
        What::StandbyCut(rounds) => rounds.run(STANDBY_CUTS_FEW, servers::standby_cut),
        What::Partition(rounds) => rounds.run(PARTITIONS_FEW, servers::partition),
        What::OldPrimary(rounds) => rounds.run(OLD_PRIMARIES_FEW, servers::old_primary),
        What::Pooler(rounds) => rounds.run(POOLERS_FEW, servers::pooler),
        What::Sentinel(rounds) => rounds.run(SENTINELS_FEW, servers::sentinel),
        What::Redis(rounds) => rounds.run(REDIS_FEW, servers::redis),
        What::Cluster(rounds) => rounds.run(CLUSTER_FEW, servers::cluster),
        What::Transaction(rounds) => rounds.run(TRANSACTIONS_FEW, servers::transaction),
        What::Consumer(rounds) => rounds.run(CONSUMERS_FEW, consumer::run),
    }
}

/// Short, because people copy it.
fn seed_or_any(seed: Option<u64>) -> u64 {
    seed.unwrap_or_else(|| rand::random::<u16>().into())
}
