//! A server that says exactly what a test wants, byte by byte, and keeps what it was told.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Heads of requests, as they came.
pub(super) type Heads = Arc<Mutex<Vec<String>>>;

/// Hands each connection, whose first head is read, to `serve`.
pub(super) async fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> (SocketAddr, Heads)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Heads::default();
    let kept = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            if let Some(head) = head(&mut stream).await {
                kept.lock().unwrap().push(head);
                tokio::spawn(serve(stream));
            }
        }
    });
    (address, heads)
}

/// Answers each request with these bytes and closes.
pub(super) async fn answering(bytes: impl Into<Vec<u8>>) -> (SocketAddr, Heads) {
    let bytes: Arc<[u8]> = bytes.into().into();
    listen(move |mut stream| {
        let bytes = Arc::clone(&bytes);
        async move {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
    })
    .await
}

/// Everything up to the empty line.
pub(super) async fn head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<String> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}
