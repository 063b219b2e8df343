//! gRPC, a few calls under way on each connection.
//!
//! Right on HTTP/2 (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>): a call is a request with one message, and its status is in
//! the trailers, or in the headers where there is nothing else.

use std::net::SocketAddr;

use anyhow::Context as _;
use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, Version};
use tokio::net::TcpStream;

use super::{PAUSE, Queue};

/// Calls under way on a connection.
pub const UNDER_WAY: usize = 2;

const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// Statuses: taken, and not taken for now.
const OK: u32 = 0;
const UNAVAILABLE: u32 = 14;

/// Sends messages, each as a call.
pub fn serve(to: SocketAddr, queue: &Queue<'_>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let (client, connection) = h2::client::handshake(stream).await?;
        // It ends with the connection, and its error is that of the calls.
        let driver = tokio::spawn(connection);
        let calls: [_; UNDER_WAY] = std::array::from_fn(|_| one_by_one(client.clone(), to, queue));
        let [first, second] = calls;
        tokio::try_join!(first, second)?;
        driver.abort();
        Ok(())
    })
}

async fn one_by_one(client: SendRequest<Bytes>, to: SocketAddr, queue: &Queue<'_>) -> anyhow::Result<()> {
    let mut client = client;
    while let Some((_, message)) = queue.next() {
        loop {
            client = client.ready().await?;
            match call(&mut client, to, message).await? {
                OK => break,
                UNAVAILABLE => tokio::time::sleep(PAUSE).await,
                status => anyhow::bail!("Wharf answered status {status}"),
            }
        }
    }
    Ok(())
}

/// The status of one call.
async fn call(client: &mut SendRequest<Bytes>, to: SocketAddr, message: &Bytes) -> anyhow::Result<u32> {
    let request = Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri(format!("http://{to}{EXPORT}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let (response, mut body) = client.send_request(request, false)?;
    // "Length-Prefixed-Message → Compressed-Flag Message-Length Message"
    let mut prefix = BytesMut::with_capacity(5);
    prefix.put_u8(0);
    prefix.put_u32(message.len() as u32);
    body.send_data(prefix.freeze(), false)?;
    body.send_data(message.clone(), true)?;
    let mut response = response.await?;
    if let Some(status) = status(response.headers()) {
        return Ok(status);
    }
    let answer = response.body_mut();
    while let Some(data) = answer.data().await {
        answer.flow_control().release_capacity(data?.len())?;
    }
    let trailers = answer.trailers().await?.context("an answer without a status")?;
    status(&trailers).context("an answer without a status")
}

fn status(headers: &HeaderMap) -> Option<u32> {
    headers.get("grpc-status")?.to_str().ok()?.parse().ok()
}
