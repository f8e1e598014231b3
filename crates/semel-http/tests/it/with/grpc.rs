//! Unary gRPC over tonic: the status of a call is in its trailers, and is replayed from there.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use http::{HeaderMap, Request, Response, Uri};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use semel_http::Settle;
use test_http::soon;
use tokio::net::{TcpListener, TcpStream};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status, client};
use tower::util::MapResponseLayer;
use tower::{BoxError, Service, service_fn};

use super::shop::{Shop, layer};

/// Messages of plain text, which saves a generator of code.
#[derive(Clone, Copy)]
struct Text;

impl Codec for Text {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Text {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, item: String, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(item.as_bytes());
        Ok(())
    }
}

impl Decoder for Text {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        String::from_utf8(bytes.to_vec()).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

/// What a generator would make of `service Charges { rpc Charge(Text) returns (Text); }`.
#[derive(Clone)]
struct Charges(Shop);

impl NamedService for Charges {
    const NAME: &'static str = "shop.Charges";
}

impl<B> Service<Request<B>> for Charges
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shop = self.0.clone();
        let charge = service_fn(move |request: tonic::Request<String>| {
            std::future::ready(charge(&shop, request.get_ref()))
        });
        Box::pin(async move { Ok(Grpc::new(Text).unary(charge, request).await) })
    }
}

fn charge(shop: &Shop, card: &str) -> Result<tonic::Response<String>, Status> {
    let number = shop.charge();
    match card {
        "declined" => Err(Status::failed_precondition(format!("declined, attempt {number}"))),
        "bank closed" => Err(Status::unavailable(format!("closed, attempt {number}"))),
        _ => {
            let mut response = tonic::Response::new(format!("charge {number} of {card}"));
            response.metadata_mut().insert("receipt", number.to_string().parse().unwrap());
            Ok(response)
        }
    }
}

/// Every status of gRPC is HTTP 200: which of them are not to be kept, the service has to say.
fn release_what_may_run_again<B>(mut response: Response<B>) -> Response<B> {
    let may_run_again = [Code::Unavailable, Code::ResourceExhausted, Code::Unauthenticated].map(i32::from);
    let code = response.headers().get("grpc-status").and_then(|code| code.to_str().ok()?.parse().ok());
    if code.is_some_and(|code| may_run_again.contains(&code)) {
        response.extensions_mut().insert(Settle::Release);
    }
    response
}

/// The layer refuses with problems of HTTP, which clients of gRPC cannot read.
fn refusals_as_statuses<B: Default>(response: Response<B>) -> Response<B> {
    if response.headers().get("content-type").is_none_or(|kind| kind != "application/problem+json") {
        return response;
    }
    let code = match response.status().as_u16() {
        400 | 422 => Code::InvalidArgument,
        409 => Code::Aborted,
        429 => Code::ResourceExhausted,
        503 | 504 => Code::Unavailable,
        _ => Code::Internal,
    };
    Status::new(code, "refused because of its Idempotency-Key").into_http()
}

/// Serves the shop over gRPC until the test ends.
async fn serve(shop: &Shop) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::builder()
        .layer(MapResponseLayer::new(refusals_as_statuses))
        .layer(layer())
        .layer(MapResponseLayer::new(release_what_may_run_again))
        .add_service(Charges(shop.clone()));
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    address
}

async fn connect<B>(at: SocketAddr) -> SendRequest<B>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let stream = TokioIo::new(TcpStream::connect(at).await.unwrap());
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// A call as a client of tonic makes it, with the key in its metadata.
async fn call(
    at: SocketAddr,
    caller: &str,
    key: &str,
    card: &str,
) -> Result<tonic::Response<String>, Status> {
    let connection = connect::<Body>(at).await;
    let service = service_fn(move |request| connection.clone().send_request(request));
    let mut grpc = client::Grpc::with_origin(service, Uri::from_static("http://shop.test"));
    let mut request = tonic::Request::new(card.to_owned());
    request.metadata_mut().insert("authorization", caller.parse().unwrap());
    request.metadata_mut().insert("idempotency-key", key.parse().unwrap());
    soon("an answer", grpc.unary(request, "/shop.Charges/Charge".parse().unwrap(), Text)).await
}

#[tokio::test]
async fn a_call_runs_once_and_its_retry_gets_message_metadata_and_status_again() {
    let shop = Shop::new();
    let at = serve(&shop).await;
    let first = call(at, "alice", "k", "visa").await.unwrap();
    let retry = call(at, "alice", "k", "visa").await.unwrap();
    for (response, replayed) in [(first, None), (retry, Some("true"))] {
        let metadata = |name| response.metadata().get(name).and_then(|value| value.to_str().ok());
        assert_eq!((response.get_ref().as_str(), metadata("receipt")), ("charge 1 of visa", Some("1")));
        assert_eq!(metadata("idempotent-replayed"), replayed);
    }
    assert_eq!(call(at, "bob", "k", "visa").await.unwrap().get_ref(), "charge 2 of visa");
    let refused = call(at, "alice", "k", "mastercard").await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert_eq!(shop.charges(), 2);
}

#[tokio::test]
async fn a_final_error_is_replayed_and_one_that_may_pass_is_not() {
    let shop = Shop::new();
    let at = serve(&shop).await;
    for _ in 0..2 {
        let status = call(at, "alice", "k", "declined").await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "declined, attempt 1"));
    }
    for attempt in [2, 3] {
        let status = call(at, "alice", "other", "bank closed").await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unavailable, format!("closed, attempt {attempt}").as_str())
        );
    }
    assert_eq!(shop.charges(), 3);
}

/// One call at the level of HTTP: headers, body, trailers.
async fn exchange(at: SocketAddr) -> (HeaderMap, Bytes, HeaderMap) {
    let mut message = vec![0, 0, 0, 0, 4];
    message.extend_from_slice(b"visa");
    let request = Request::post("http://shop.test/shop.Charges/Charge")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("authorization", "alice")
        .header("idempotency-key", "k")
        .body(Full::<Bytes>::from(message))
        .unwrap();
    let response = soon("an answer", connect(at).await.send_request(request)).await.unwrap();
    assert_eq!(response.status(), 200);
    let (parts, body) = response.into_parts();
    assert!(!body.is_end_stream());
    let collected = soon("a body", body.collect()).await.unwrap();
    let trailers = collected.trailers().cloned().expect("there are trailers");
    (parts.headers, collected.to_bytes(), trailers)
}

#[tokio::test]
async fn trailers_are_replayed_after_the_body_and_not_among_the_headers() {
    let shop = Shop::new();
    let at = serve(&shop).await;
    let (_, first_body, first_trailers) = exchange(at).await;
    let (headers, body, trailers) = exchange(at).await;
    assert_eq!(headers["idempotent-replayed"], "true");
    assert!(!headers.contains_key("grpc-status"), "{headers:?}");
    assert_eq!(trailers["grpc-status"], "0");
    assert_eq!((body, trailers), (first_body, first_trailers));
    assert_eq!(shop.charges(), 1);
}
