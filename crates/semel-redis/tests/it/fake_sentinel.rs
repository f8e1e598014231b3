//! A server that speaks as a sentinel does and names the master that a test chooses, when the test chooses.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The master that a sentinel names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) port: u16,
    pub(crate) epoch: u64,
}

/// How a subscriber hears of another master.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Announcing {
    /// By a message.
    Yes,
    /// Not at all: it is refused.
    No,
}

/// A sentinel on 127.0.0.1. Its connections end with the runtime.
#[derive(Clone)]
pub(crate) struct FakeSentinel {
    pub(crate) port: u16,
    named: Arc<Mutex<Named>>,
    /// Incremented for every announcement.
    announced: watch::Sender<u64>,
    announcing: Announcing,
    asked: Arc<AtomicU64>,
    is_silent: Arc<AtomicBool>,
}

impl FakeSentinel {
    pub(crate) async fn start(master: u16, announcing: Announcing) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let named = Arc::new(Mutex::new(Named { port: master, epoch: 1 }));
        let sentinel = Self {
            port,
            named,
            announced: watch::Sender::new(0),
            announcing,
            asked: Arc::default(),
            is_silent: Arc::default(),
        };
        let serving = sentinel.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        sentinel
    }

    pub(crate) fn url(sentinels: &[&Self]) -> String {
        let hosts: Vec<_> = sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://{}/semel", hosts.join(","))
    }

    /// Names this master from now on.
    pub(crate) fn name(&self, port: u16, epoch: u64) {
        *self.named.lock().unwrap() = Named { port, epoch };
    }

    /// Publishes `+switch-master`.
    pub(crate) fn announce(&self) {
        self.announced.send_modify(|count| *count += 1);
    }

    /// How often it was asked for the master.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// Cuts every connection at its next command.
    pub(crate) fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Release);
    }

    pub(crate) fn speak_again(&self) {
        self.is_silent.store(false, Ordering::Release);
    }

    /// How many subscribers there are.
    pub(crate) fn subscribers(&self) -> usize {
        self.announced.receiver_count()
    }

    async fn serve(self, stream: TcpStream) -> Option<()> {
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        loop {
            let words = command(&mut read).await?;
            if self.is_silent.load(Ordering::Acquire) {
                return None;
            }
            let words: Vec<_> = words.iter().map(|word| word.to_ascii_uppercase()).collect();
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let Named { port, epoch } = *self.named.lock().unwrap();
            let reply = match words.as_slice() {
                ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", _] => {
                    self.asked.fetch_add(1, Ordering::AcqRel);
                    list(&["127.0.0.1", &port.to_string()])
                }
                ["SENTINEL", "MASTER", _] => list(&["name", "semel", "config-epoch", &epoch.to_string()]),
                ["SUBSCRIBE", _] if self.announcing == Announcing::Yes => {
                    let subscribed = "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";
                    write.write_all(subscribed.as_bytes()).await.ok()?;
                    return self.publish(read, write).await;
                }
                ["SUBSCRIBE", _] => "-NOPERM this user has no permissions\r\n".to_owned(),
                _ => "+OK\r\n".to_owned(),
            };
            write.write_all(reply.as_bytes()).await.ok()?;
        }
    }

    async fn publish(
        self,
        mut read: BufReader<tokio::net::tcp::OwnedReadHalf>,
        mut write: tokio::net::tcp::OwnedWriteHalf,
    ) -> Option<()> {
        let mut announced = self.announced.subscribe();
        let mut bytes = [0; 256];
        loop {
            tokio::select! {
                changed = announced.changed() => {
                    changed.ok()?;
                    let message = list(&["message", "+switch-master", "semel"]);
                    write.write_all(message.as_bytes()).await.ok()?;
                }
                read = read.read(&mut bytes) => {
                    if read.ok()? == 0 {
                        return None;
                    }
                    write.write_all(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n").await.ok()?;
                }
            }
        }
    }
}

/// The words of the next command.
async fn command(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Vec<String>> {
    let mut line = String::new();
    read.read_line(&mut line).await.ok().filter(|bytes| *bytes > 0)?;
    let count = line.trim_end().strip_prefix('*')?.parse::<usize>().ok()?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut length = String::new();
        read.read_line(&mut length).await.ok()?;
        let mut bytes = vec![0; length.trim_end().strip_prefix('$')?.parse::<usize>().ok()? + 2];
        read.read_exact(&mut bytes).await.ok()?;
        bytes.truncate(bytes.len() - 2);
        words.push(String::from_utf8(bytes).ok()?);
    }
    Some(words)
}

fn list(words: &[&str]) -> String {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), words.collect::<Vec<_>>().concat())
}
