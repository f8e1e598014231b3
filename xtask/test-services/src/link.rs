//! A TCP link between clients and one server that can be cut, frozen, or made to swallow replies.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use rustix::net;

/// How many connections the kernel accepts before the link does.
const BACKLOG: i32 = 128;
const BIND_TRIES: u32 = 20;
const CHUNK_BYTES: usize = 1 << 16;

/// A port on 127.0.0.1 that leads to a server's port. Dropped, its connections are reset and its port is closed.
///
/// Bytes that the link has already taken from one side when its state changes may still reach the other side.
#[derive(Debug)]
pub struct Link {
    port: u16,
    shared: Arc<Shared>,
}

/// What becomes of connections and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    /// Everything passes.
    Open,
    /// Connections are refused.
    Cut,
    /// Connections stay, and nothing passes: neither bytes nor the end of a connection.
    Frozen,
    /// The same for clients with this address; for others everything passes.
    FrozenFrom(Ipv4Addr),
    /// Requests pass; replies, and the end of them, do not.
    RepliesSwallowed,
}

/// Whose bytes these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Request,
    Reply,
}

/// What to do with bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    Swallow,
    Reset,
}

/// What the threads of a link share.
#[derive(Debug)]
struct Shared {
    listener: TcpListener,
    server: u16,
    state: Mutex<State>,
    changed: Condvar,
    /// How many bytes of replies were swallowed.
    swallowed: AtomicU64,
}

#[derive(Debug)]
struct State {
    traffic: Traffic,
    /// Set when the link is dropped.
    is_over: bool,
    connections: Vec<Arc<Connection>>,
}

/// One client's connection, and the one to the server for it.
#[derive(Debug)]
struct Connection {
    client: TcpStream,
    server: Mutex<Option<TcpStream>>,
    is_reset: AtomicBool,
    /// Some of its bytes were swallowed: what comes after them would be taken for them.
    has_gap: AtomicBool,
}

impl Link {
    /// A link to the server on this port of 127.0.0.1, which need not run yet.
    pub fn to(server: u16) -> Result<Self> {
        let listener = bind().context("no port for a link")?;
        let port = listener.local_addr()?.port();
        let state = State { traffic: Traffic::Open, is_over: false, connections: Vec::new() };
        let shared = Arc::new(Shared {
            listener,
            server,
            state: Mutex::new(state),
            changed: Condvar::new(),
            swallowed: AtomicU64::new(0),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept());
        Ok(Self { port, shared })
    }

    /// The port that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Resets every connection, and refuses new ones.
    pub fn cut(&self) {
        let mut state = self.shared.set(Traffic::Cut);
        // The port stays bound: no other process can get it meanwhile.
        let _ = net::shutdown(&self.shared.listener, net::Shutdown::Both);
        for connection in state.connections.drain(..) {
            connection.reset();
        }
    }

    /// Makes it a black hole: connections stay open and new ones are accepted by the kernel, and nothing passes in either
    /// direction.
    pub fn freeze(&self) {
        drop(self.shared.set(Traffic::Frozen));
    }

    /// Makes it a black hole for clients whose own address is this one (such as 127.0.0.2), and for no others.
    pub fn freeze_from(&self, client: Ipv4Addr) {
        drop(self.shared.set(Traffic::FrozenFrom(client)));
    }

    /// Lets requests pass and drops the replies, while connections stay open.
    pub fn swallow_replies(&self) {
        drop(self.shared.set(Traffic::RepliesSwallowed));
    }

    /// Lets everything pass again: what was held back arrives. A connection whose replies were swallowed is reset,
    /// because a later reply would be taken for the one that is missing.
    pub fn mend(&self) {
        let mut state = self.shared.set(Traffic::Open);
        state.connections.retain(|connection| {
            let has_gap = connection.has_gap.load(Ordering::SeqCst);
            if has_gap {
                connection.reset();
            }
            !has_gap
        });
    }

    /// How many connections there are, as far as the link knows of their end.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// How many bytes of replies were swallowed so far.
    pub fn swallowed_bytes(&self) -> u64 {
        self.shared.swallowed.load(Ordering::SeqCst)
    }
}

/// Binds a free port by its number: only then does the socket keep it while it does not listen.
fn bind() -> std::io::Result<TcpListener> {
    let mut tries = 0_u32;
    loop {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        tries = tries.saturating_add(1);
        match TcpListener::bind(free) {
            // Another process was faster.
            Err(_) if tries < BIND_TRIES => {}
            bound => return bound,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.cut();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, traffic: Traffic) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if state.traffic == Traffic::Cut && traffic != Traffic::Cut {
            // The socket is still bound; a cut only ended its listening.
            let _ = net::listen(&self.listener, BACKLOG);
        }
        state.traffic = traffic;
        self.changed.notify_all();
        state
    }

    /// Takes connections until the link is dropped.
    fn accept(self: Arc<Self>) {
        loop {
            let mut state = self.lock();
            while state.traffic == Traffic::Cut && !state.is_over {
                state = self.wait(state);
            }
            if state.is_over {
                return;
            }
            drop(state);
            // An error means that the link was cut.
            let Ok((client, _)) = self.listener.accept() else { continue };
            let connection = Arc::new(Connection::new(client));
            let mut state = self.lock();
            if state.traffic == Traffic::Cut {
                connection.reset();
                continue;
            }
            state.connections.push(Arc::clone(&connection));
            drop(state);
            let shared = Arc::clone(&self);
            thread::spawn(move || {
                shared.carry(&connection);
                shared.lock().connections.retain(|other| !Arc::ptr_eq(other, &connection));
            });
        }
    }

    /// Carries one connection to its end.
    fn carry(&self, connection: &Arc<Connection>) {
        if self.fate(connection, Direction::Request) == Fate::Reset {
            return;
        }
        let Ok(server) = self.connect(connection) else { return connection.reset() };
        thread::scope(|scope| {
            scope.spawn(|| self.pump(connection, &server, &connection.client, Direction::Reply));
            self.pump(connection, &connection.client, &server, Direction::Request);
        });
    }

    fn connect(&self, connection: &Connection) -> std::io::Result<TcpStream> {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server))?;
        server.set_nodelay(true)?;
        connection.client.set_nodelay(true)?;
        *connection.server() = Some(server.try_clone()?);
        if connection.is_reset.load(Ordering::SeqCst) {
            connection.reset();
        }
        Ok(server)
    }

    /// Hands on what comes from one side to the other, until that side ends.
    fn pump(&self, connection: &Connection, mut from: &TcpStream, mut to: &TcpStream, direction: Direction) {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = from.read(&mut chunk);
            let (bytes, is_broken) = (read.as_ref().copied().unwrap_or(0), read.is_err());
            match self.fate(connection, direction) {
                Fate::Reset => return,
                Fate::Swallow => {
                    connection.has_gap.store(true, Ordering::SeqCst);
                    self.swallowed.fetch_add(bytes as u64, Ordering::SeqCst);
                    if bytes > 0 {
                        continue;
                    }
                    // Its end is swallowed too: the client hears nothing before the link is mended.
                    self.until_replies_pass(connection);
                }
                Fate::Pass => {}
            }
            if is_broken {
                return connection.reset();
            }
            if bytes == 0 {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            if to.write_all(chunk.get(..bytes).unwrap_or_default()).is_err() {
                // The other side is gone, which this one may hear of only while the link lets it.
                if self.fate(connection, direction) != Fate::Reset {
                    connection.reset();
                }
                return;
            }
        }
    }

    /// What becomes of bytes in this direction, once it is known.
    fn fate(&self, connection: &Connection, direction: Direction) -> Fate {
        let mut state = self.lock();
        loop {
            if connection.is_reset.load(Ordering::SeqCst) {
                return Fate::Reset;
            }
            match (state.traffic, direction) {
                (Traffic::Open, _) | (Traffic::RepliesSwallowed, Direction::Request) => return Fate::Pass,
                (Traffic::RepliesSwallowed, Direction::Reply) => return Fate::Swallow,
                (Traffic::Cut, _) => return Fate::Reset,
                (Traffic::FrozenFrom(address), _) if !connection.is_from(address) => return Fate::Pass,
                (Traffic::Frozen | Traffic::FrozenFrom(_), _) => state = self.wait(state),
            }
        }
    }

    fn until_replies_pass(&self, connection: &Connection) {
        let mut state = self.lock();
        while state.traffic != Traffic::Open && !connection.is_reset.load(Ordering::SeqCst) {
            state = self.wait(state);
        }
    }
}

impl Connection {
    fn new(client: TcpStream) -> Self {
        Self {
            client,
            server: Mutex::default(),
            is_reset: AtomicBool::new(false),
            has_gap: AtomicBool::new(false),
        }
    }

    fn server(&self) -> MutexGuard<'_, Option<TcpStream>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_from(&self, address: Ipv4Addr) -> bool {
        self.client.peer_addr().is_ok_and(|peer| peer.ip() == address)
    }

    /// Ends both connections at once, without a farewell; threads that wait for them go on.
    fn reset(&self) {
        self.is_reset.store(true, Ordering::SeqCst);
        let server = self.server();
        for stream in [Some(&self.client), server.as_ref()].into_iter().flatten() {
            if net::connect_unspec(stream).is_err() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::time::Duration;

    /// Long enough for bytes that pass, and short enough to wait for bytes that do not.
    const SILENCE: Duration = Duration::from_millis(150);
    const PATIENCE: Duration = Duration::from_secs(20);

    /// A server that sends back what it gets, and counts it.
    struct Echo {
        port: u16,
        heard: Arc<AtomicU64>,
    }

    impl Echo {
        fn start() -> Self {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let heard = Arc::new(AtomicU64::new(0));
            let counter = Arc::clone(&heard);
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let (mut stream, counter) = (stream.unwrap(), Arc::clone(&counter));
                    thread::spawn(move || {
                        let mut chunk = [0; 1024];
                        while let Ok(bytes @ 1..) = stream.read(&mut chunk) {
                            counter.fetch_add(bytes as u64, Ordering::SeqCst);
                            stream.write_all(&chunk[..bytes]).unwrap();
                        }
                    });
                }
            });
            Self { port, heard }
        }

        fn until_heard(&self, bytes: u64) {
            while self.heard.load(Ordering::SeqCst) < bytes {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn client(link: &Link) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn echoed(mut stream: &TcpStream, text: &str) -> String {
        stream.write_all(text.as_bytes()).unwrap();
        read(stream, text.len())
    }

    fn read(mut stream: &TcpStream, bytes: usize) -> String {
        let mut reply = vec![0; bytes];
        stream.read_exact(&mut reply).unwrap();
        String::from_utf8(reply).unwrap()
    }

    fn is_silent(mut stream: &TcpStream) -> bool {
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        let read = stream.read(&mut [0; 16]);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    fn end_of(mut stream: &TcpStream) -> ErrorKind {
        match stream.read(&mut [0; 16]) {
            Ok(bytes) => panic!("{bytes} bytes instead of a reset"),
            Err(error) => error.kind(),
        }
    }

    #[test]
    fn everything_passes_an_open_link_and_so_does_the_end() {
        let echo = Echo::start();
        let link = Link::to(echo.port).unwrap();
        let one = client(&link);
        assert_eq!(echoed(&one, "a"), "a");
        assert_eq!(echoed(&client(&link), "b"), "b");
        one.shutdown(Shutdown::Write).unwrap();
        assert_eq!((&one).read(&mut [0; 4]).unwrap(), 0);
        drop(one);
        while link.connections() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_cut_link_resets_its_connections_and_refuses_new_ones_until_it_is_mended() {
        let echo = Echo::start();
        let link = Link::to(echo.port).unwrap();
        let before = client(&link);
        assert_eq!(echoed(&before, "a"), "a");
        for _ in 0..3 {
            link.cut();
            let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port())).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            link.mend();
            assert_eq!(echoed(&client(&link), "b"), "b");
        }
        assert_eq!(end_of(&before), ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_frozen_link_holds_everything_back_and_hands_it_on_when_it_is_mended() {
        let echo = Echo::start();
        let link = Link::to(echo.port).unwrap();
        let before = client(&link);
        assert_eq!(echoed(&before, "a"), "a");
        link.freeze();
        (&before).write_all(b"b").unwrap();
        let meanwhile = client(&link);
        (&meanwhile).write_all(b"c").unwrap();
        assert!(is_silent(&before) && is_silent(&meanwhile));
        assert_eq!(echo.heard.load(Ordering::SeqCst), 1, "a byte passed");
        link.mend();
        assert_eq!((read(&before, 1), read(&meanwhile, 1)), ("b".into(), "c".into()));
    }

    #[test]
    fn a_link_can_be_frozen_for_clients_with_one_address() {
        let echo = Echo::start();
        let link = Link::to(echo.port).unwrap();
        let one = client(&link);
        assert_eq!(echoed(&one, "a"), "a");
        link.freeze_from(Ipv4Addr::new(127, 0, 0, 2));
        assert_eq!(echoed(&one, "b"), "b");
        link.freeze_from(Ipv4Addr::LOCALHOST);
        (&one).write_all(b"c").unwrap();
        assert!(is_silent(&one));
        link.mend();
        assert_eq!(read(&one, 1), "c");
    }

    #[test]
    fn a_client_of_a_frozen_link_does_not_hear_that_its_server_is_gone() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let link = Link::to(listener.local_addr().unwrap().port()).unwrap();
        let through = client(&link);
        let (server, _) = listener.accept().unwrap();
        link.freeze();
        drop((server, listener));
        assert!(is_silent(&through));
        link.mend();
        assert_eq!((&through).read(&mut [0; 4]).unwrap(), 0);
        // Where there is no server, a connection ends as soon as it is made.
        let mut late = client(&link);
        assert!(late.read(&mut [0; 4]).map_or(true, |bytes| bytes == 0));
    }

    #[test]
    fn swallowed_replies_never_come_and_their_connections_are_reset_afterwards() {
        let echo = Echo::start();
        let link = Link::to(echo.port).unwrap();
        let (asking, idle) = (client(&link), client(&link));
        assert_eq!((echoed(&asking, "a"), echoed(&idle, "b")), ("a".into(), "b".into()));
        link.swallow_replies();
        (&asking).write_all(b"c").unwrap();
        let meanwhile = client(&link);
        (&meanwhile).write_all(b"d").unwrap();
        echo.until_heard(4);
        assert!(is_silent(&asking) && is_silent(&meanwhile));
        while link.swallowed_bytes() < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        link.mend();
        assert_eq!(end_of(&asking), ErrorKind::ConnectionReset);
        assert_eq!(end_of(&meanwhile), ErrorKind::ConnectionReset);
        assert_eq!(echoed(&idle, "e"), "e");
    }

    #[test]
    fn nothing_is_left_of_a_dropped_link() {
        let echo = Echo::start();
        let link = Link::to(echo.port).unwrap();
        let (port, shared) = (link.port(), Arc::downgrade(&link.shared));
        let through = client(&link);
        assert_eq!(echoed(&through, "a"), "a");
        drop(link);
        assert_eq!(end_of(&through), ErrorKind::ConnectionReset);
        while shared.strong_count() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    }
}
