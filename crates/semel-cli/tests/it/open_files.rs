//! A proxy that may have few files open: connections that send nothing do not keep out those that ask.

use std::process::{Command, Stdio};
use std::time::Duration;

use test_http::{Client, Proxy, Upstream};

const FILES: usize = 200;
const SLOW: usize = 400;
/// The last numbers of the addresses that slow clients come from.
const PEERS: [u8; 8] = [2, 3, 4, 5, 6, 7, 8, 9];

#[tokio::test]
async fn slow_heads_do_not_use_up_the_files_that_others_need() {
    let upstream = Upstream::counting(Duration::ZERO).await;
    let mut limited = Command::new("sh");
    let script = format!("ulimit -n {FILES} && exec \"$0\" \"$@\"");
    limited.args(["-c", &script, env!("CARGO_BIN_EXE_semel")]).env_remove("SEMEL_STORE").stdin(Stdio::null());
    let config =
        format!("upstream = \"http://{}\"\nstore = \"memory:\"\naccess_log = \"off\"\n", upstream.address);
    let mut proxy = Proxy::with_config(&mut limited, &config).await.expect("starts");
    let mut slow = Vec::new();
    for n in 0..SLOW {
        // From many addresses: the share of one peer alone would leave files for others.
        let mut client = Client::connect_from([127, 0, 0, PEERS[n % PEERS.len()]], proxy.address).await;
        client.write_if_open("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ").await;
        slow.push(client);
    }
    for n in 0..20 {
        let asked = async {
            let mut client = Client::connect(proxy.address).await;
            client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.status
        };
        let status = tokio::time::timeout(Duration::from_secs(10), asked).await;
        assert!(matches!(status, Ok(200..300)), "{n}: {status:?}\n{}", proxy.tail());
    }
    assert!(proxy.is_running(), "{}", proxy.tail());
    drop(slow);
}
