//! Requests to a server and their answers. An exchange ends in time, and says whether anything can have reached the server.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use semel::{Error, ErrorKind, Result};
use semel_listen::PlainOrTls;
use semel_listen::tls::{certificates, provider, refused, unusable};
use semel_ops::store_url::ServerUrl;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::{TlsConnector, TlsStream};

use super::problem;
use super::token::Token;

/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long an answer may take, to its last byte.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);
/// The largest answer that is read: a server answers with far less, unless a single record is as large.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// How long a connection is kept for the next request: not so long that the server gives it up meanwhile.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// How often a request is sent again that the token's quota refused.
const QUOTA_TRIES: usize = 8;
/// How long is waited at most before each.
const QUOTA_WAIT_MAX: Duration = Duration::from_secs(10);

/// Asks one server.
pub(super) struct Client {
    url: ServerUrl,
    token: Option<Token>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Mutex<Vec<Connection>>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    used_at: Instant,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing of the request has reached the server.
    NeverSent(Error),
    /// The request may have reached it.
    Lost(String),
}

/// An answer, to its last byte.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answered {
    /// The media type, without its parameters.
    pub(super) fn media_type(&self) -> &str {
        let value = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim()
    }

    fn retry_after(&self) -> Duration {
        let seconds = self.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        Duration::from_secs(seconds.unwrap_or(1)).min(QUOTA_WAIT_MAX)
    }
}

impl Client {
    pub(super) fn new(url: &ServerUrl, token: Option<Token>, ca_file: Option<&Path>) -> Result<Self> {
        let tls = url.is_secured().then(|| secured(url, ca_file)).transpose()?;
        Ok(Self { url: url.clone(), token, tls, idle: Mutex::default() })
    }

    pub(super) fn url(&self) -> &ServerUrl {
        &self.url
    }

    pub(super) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Reads something. It changes nothing, so it is asked a second time if an answer is lost.
    pub(super) async fn get<T: DeserializeOwned>(&self, target: &str) -> Result<T> {
        let ask = || self.exchange(&Method::GET, target, Bytes::new());
        let answered = match ask().await {
            Err(Failure::Lost(_)) => ask().await,
            answered => answered,
        };
        match answered {
            Ok(answered) => problem::read(self, &answered, target),
            Err(Failure::NeverSent(error)) => Err(error),
            Err(Failure::Lost(why)) => Err(problem::no_answer(&self.url, &why)),
        }
    }

    /// Changes something. If the answer is lost, it is not known whether that was done; `find_out` says how to find out.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        target: &str,
        body: &impl Serialize,
        find_out: &str,
    ) -> Result<T> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::new(ErrorKind::Invalid, format!("this cannot be sent: {error}")))?;
        match self.exchange(&Method::POST, target, body.into()).await {
            Ok(answered) => problem::read(self, &answered, target),
            Err(Failure::NeverSent(error)) => Err(error),
            Err(Failure::Lost(why)) => Err(problem::unknown(&self.url, &why, find_out)),
        }
    }

    /// One exchange; a request that the token's quota refused, which changed nothing, is sent again when the server says so.
    async fn exchange(&self, method: &Method, target: &str, body: Bytes) -> Result<Answered, Failure> {
        for _ in 0..QUOTA_TRIES {
            let answered = self.exchange_once(self.request(method, target, body.clone())?).await?;
            if answered.status != StatusCode::TOO_MANY_REQUESTS {
                return Ok(answered);
            }
            sleep(answered.retry_after()).await;
        }
        self.exchange_once(self.request(method, target, body)?).await
    }

    fn request(&self, method: &Method, target: &str, body: Bytes) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::builder().method(method).uri(target).header(HOST, self.url.authority());
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.header());
        }
        request.body(Full::new(body)).map_err(|error| {
            let message = format!("no request can be made for {}: {error}", self.url);
            Failure::NeverSent(Error::new(ErrorKind::Invalid, message))
        })
    }

    /// Over a connection that is there, or a new one. One that the server closed meanwhile hands the request back unsent.
    async fn exchange_once(&self, mut request: Request<Full<Bytes>>) -> Result<Answered, Failure> {
        loop {
            let (mut sender, is_new) = match self.idle() {
                Some(sender) => (sender, false),
                None => (self.connect().await.map_err(Failure::NeverSent)?, true),
            };
            let answer = timeout(ANSWER_WITHIN, async {
                match sender.try_send_request(request).await {
                    Ok(response) => Ok(whole(response).await),
                    Err(error) => Err(error),
                }
            });
            match answer.await {
                Err(_) => {
                    return Err(Failure::Lost(format!("no answer within {}s", ANSWER_WITHIN.as_secs())));
                }
                Ok(Ok(answered)) => {
                    if answered.is_ok() {
                        self.keep(sender);
                    }
                    return answered;
                }
                Ok(Err(mut error)) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    Some(_) => {
                        let why = error.into_error().to_string();
                        return Err(Failure::NeverSent(problem::no_answer(&self.url, &why)));
                    }
                    None => return Err(Failure::Lost(error.into_error().to_string())),
                },
            }
        }
    }

    fn idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| connection.used_at.elapsed() < IDLE_MAX && !connection.sender.is_closed());
        idle.pop().map(|connection| connection.sender)
    }

    fn keep(&self, sender: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(Connection { sender, used_at: Instant::now() });
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let too_slow = || io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
        let wire = timeout(CONNECT_WITHIN, self.wire()).await.unwrap_or_else(|_| Err(too_slow()));
        let wire = wire.map_err(|error| problem::unreachable(&self.url, CONNECT_WITHIN, &error))?;
        let (sender, connection) = http1::handshake(TokioIo::new(wire))
            .await
            .map_err(|error| problem::no_answer(&self.url, &error.to_string()))?;
        // It ends with its sender; why it ended is said by the exchange that it ended under.
        tokio::spawn(async { drop(connection.await) });
        Ok(sender)
    }

    async fn wire(&self) -> io::Result<PlainOrTls> {
        let stream = TcpStream::connect((self.url.host(), self.url.port())).await?;
        stream.set_nodelay(true)?;
        Ok(match &self.tls {
            None => PlainOrTls::Plain(stream),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await?;
                PlainOrTls::Secured(Box::new(TlsStream::Client(stream)))
            }
        })
    }
}

async fn whole(response: Response<Incoming>) -> Result<Answered, Failure> {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| Failure::Lost(format!("the answer is not whole: {error}")))?;
    Ok(Answered { status: parts.status, headers: parts.headers, body: body.to_bytes() })
}

/// Trusts what the system trusts, and the authority in this file.
fn secured(url: &ServerUrl, ca_file: Option<&Path>) -> Result<(TlsConnector, ServerName<'static>)> {
    let name = ServerName::try_from(url.host().to_owned()).map_err(|_| {
        let message = format!("`{}` is no name that a certificate could carry", url.host());
        Error::new(ErrorKind::Invalid, message)
    })?;
    let mut authorities = RootCertStore::empty();
    // What cannot be read of the system's is left out: the authority that matters may be among the others.
    authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = ca_file {
        for certificate in certificates(file)? {
            authorities
                .add(certificate)
                .map_err(|error| refused(file, "holds a certificate that is no authority's", error))?;
        }
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    Ok((TlsConnector::from(std::sync::Arc::new(config)), name))
}
