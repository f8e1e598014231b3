//! A store for one test: a folder, a schema or a prefix of its own; or such a prefix behind a process that has it.

use semel::record::PermitId;
use semel::{Key, Semel};
use semel_ops::store_url::Address;
use tempfile::TempDir;
use test_http::Program;
use test_services::Lent;

use crate::binary::semel;

/// A store that no other test uses.
pub(crate) struct Place {
    url: String,
    /// What this process opens: the store itself, also where commands are given the URL of a process.
    store_url: String,
    again: fn() -> Place,
    folder: Option<TempDir>,
    _server: Option<Lent>,
    _process: Option<Program>,
}

impl Place {
    pub(crate) fn file() -> Self {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let url = format!("file:{}", folder.path().join("store").display());
        // A folder is no store before somebody used it.
        let place = Self { folder: Some(folder), ..Self::of(url, Self::file) };
        place.with(async |_| ());
        place
    }

    pub(crate) fn postgres() -> Self {
        let (url, server) = Self::empty_schema();
        wait_for(semel_postgres::migrate(&url)).expect("the schema is made");
        Self { _server: Some(server), ..Self::of(url, Self::postgres) }
    }

    /// A schema of PostgreSQL's that has no tables yet.
    pub(crate) fn empty_schema() -> (String, Lent) {
        let server = test_services::postgres_url().expect("PostgreSQL starts");
        let schema = unique("cli");
        wait_for(async {
            let (client, connection) =
                tokio_postgres::connect(&server, tokio_postgres::NoTls).await.expect("is up");
            let driven = tokio::spawn(connection);
            client.batch_execute(&format!("CREATE SCHEMA {schema}")).await.expect("is made");
            drop(client);
            driven.await.expect("ends").expect("ends well");
        });
        (format!("{}?options=-csearch_path%3D{schema}", &*server), server)
    }

    pub(crate) fn redis() -> Self {
        let server = test_services::redis_url().expect("Redis starts");
        let url = format!("{}?prefix={}", &*server, unique("cli"));
        Self { _server: Some(server), ..Self::of(url, Self::redis) }
    }

    pub(crate) fn redis_cluster() -> Self {
        let server = test_services::redis_cluster_url().expect("a cluster starts");
        let url = format!("{}?prefix={}", &*server, unique("cli"));
        Self { _server: Some(server), ..Self::of(url, Self::redis_cluster) }
    }

    /// A store that commands reach through `semel serve` alone.
    pub(crate) fn behind_a_server() -> Self {
        Self::redis().behind(|store| serve(store, &[]))
    }

    /// A store that commands reach through the admin side of `semel proxy` alone.
    pub(crate) fn beside_a_proxy() -> Self {
        Self::redis().behind(|store| proxy(store, &[]))
    }

    fn of(url: String, again: fn() -> Self) -> Self {
        Self { store_url: url.clone(), url, again, folder: None, _server: None, _process: None }
    }

    /// The same store, reached through a process that is started on it.
    fn behind(self, start: impl FnOnce(&str) -> (Program, String)) -> Self {
        let (process, url) = start(&self.store_url);
        Self { url, _process: Some(process), ..self }
    }

    /// Another store of the same kind.
    pub(crate) fn another(&self) -> Self {
        (self.again)()
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether several processes may use it at once.
    pub(crate) fn is_shared(&self) -> bool {
        self.folder.is_none()
    }

    /// Does something with the store from this process, which is done with it afterwards.
    pub(crate) fn with<T>(&self, work: impl AsyncFnOnce(Semel) -> T) -> T {
        wait_for(async {
            let store = self.store_url.parse::<Address>().expect("is fine").open().await.expect("opens");
            let semel = Semel::builder_shared(store.store()).owner("worker-7").build().expect("is fine");
            work(semel).await
        })
    }
}

/// `semel serve` on this store, and its URL.
pub(crate) fn serve(store: &str, options: &[&str]) -> (Program, String) {
    let mut command = semel();
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]).args(options);
    let mut program = Program::start(&mut command).expect("starts");
    let url = format!("http://{}", program.listening().expect("listens"));
    (program, url)
}

/// `semel proxy` on this store, and the URL of its admin side.
pub(crate) fn proxy(store: &str, options: &[&str]) -> (Program, String) {
    let mut command = semel();
    command.args(["proxy", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0"]);
    command.args(["--admin", "127.0.0.1:0", "--store", store]).args(options);
    let mut program = Program::start(&mut command).expect("starts");
    program.listening().expect("listens");
    let said = program.err();
    let (_, admin) = said.split_once("the dashboard on ").expect("it says where its admin side is");
    let url = admin.lines().next().expect("is a line").to_owned();
    (program, url)
}

/// Runs a future to its end, and whatever it left in the background with it.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("starts");
    runtime.block_on(future)
}

/// The word, and something that makes it like no other.
fn unique(word: &str) -> String {
    format!("{word}_{:016x}", rand::random::<u64>())
}

/// The hex digits of a key's id.
pub(crate) fn id(key: &Key) -> String {
    key.id().to_string()
}

/// A permit id, as an export writes it.
pub(crate) fn hex(permit_id: PermitId) -> String {
    format!("{:032x}", permit_id.get())
}
