//! One command to a Redis server, over a connection of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// A server that does not answer within this time hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// How deep a reply may be nested; ours are at most three deep.
const DEPTH_MOST: u8 = 8;

/// Asks the server on this port. The reply's texts and numbers come in the order they are in, however they are nested;
/// what is nil is left out.
pub(super) fn ask(port: u16, words: &[&str]) -> Result<Vec<String>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&request(words))?;
    let mut found = Vec::new();
    read(&mut BufReader::new(stream), &mut found, DEPTH_MOST)
        .with_context(|| format!("`{}` on port {port}", words.join(" ")))?;
    Ok(found)
}

/// The same for a reply that is one text.
pub(super) fn ask_text(port: u16, words: &[&str]) -> Result<String> {
    Ok(ask(port, words)?.into_iter().next().unwrap_or_default())
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

fn read(from: &mut impl BufRead, found: &mut Vec<String>, depth: u8) -> Result<()> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).context("the connection was closed")?;
    match kind {
        "+" | ":" => found.push(rest.to_owned()),
        "-" => bail!("{rest}"),
        "$" => {
            // Nil has the length -1.
            if let Ok(length) = rest.parse::<usize>() {
                let mut bytes = vec![0; length.saturating_add(2)];
                from.read_exact(&mut bytes)?;
                bytes.truncate(length);
                found.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        "*" => {
            ensure!(depth > 0, "a reply that is nested too deep");
            for _ in 0..rest.parse::<usize>().unwrap_or(0) {
                read(from, found, depth.saturating_sub(1))?;
            }
        }
        _ => bail!("no reply of Redis: {line}"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reply: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        read(&mut reply.as_bytes(), &mut found, DEPTH_MOST).map(|()| found)
    }

    #[test]
    fn replies_are_read_however_they_are_nested() {
        assert_eq!(of("+PONG\r\n").unwrap(), ["PONG"]);
        assert_eq!(of("*3\r\n:1\r\n$-1\r\n*1\r\n$4\r\na\r\nb\r\n").unwrap(), ["1", "a\r\nb"]);
        assert_eq!(of("-LOADING it\r\n").unwrap_err().to_string(), "LOADING it");
        assert!(of("").is_err());
        assert!(of(&"*1\r\n".repeat(20)).is_err());
    }
}
