//! RabbitMQ: stops and kills.

use std::io::{Read, Write};
use std::net::TcpStream;

use test_services::RabbitMq;

/// How the server greets who speaks its protocol.
fn greeting(port: u16) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"AMQP\x00\x00\x09\x01")?;
    let mut greeting = vec![0; 11];
    stream.read_exact(&mut greeting)?;
    Ok(greeting)
}

#[test]
fn a_rabbitmq_comes_back_on_its_port_after_a_kill_and_after_a_stop() {
    let mut server = RabbitMq::start().unwrap();
    let port = server.port();
    // Method frame of channel 0: connection.start.
    let is_start = |greeting: &[u8]| greeting.starts_with(&[1, 0, 0]) && greeting.ends_with(&[0, 10, 0, 10]);
    assert!(is_start(&greeting(port).unwrap()));
    server.kill().unwrap();
    assert!(greeting(port).is_err(), "it still answers");
    server.resume().unwrap();
    assert!(is_start(&greeting(port).unwrap()));
    server.stop().unwrap();
    assert!(greeting(port).is_err(), "it still answers");
    server.resume().unwrap();
    assert!(is_start(&greeting(port).unwrap()));
    let folder = server.folder().to_owned();
    drop(server);
    assert!(!folder.exists() && greeting(port).is_err(), "something is left");
}
