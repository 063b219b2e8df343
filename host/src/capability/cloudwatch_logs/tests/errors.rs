//! What comes back instead of success, and that nothing is tried twice.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

#[tokio::test]
async fn refusals_come_out_as_they_are_after_one_attempt() {
    // The forms of an error's name: <https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html#operation-error-serialization>.
    for (status, name, code) in [
        (400, "ThrottlingException", "ThrottlingException"),
        (400, "ResourceNotFoundException", "ResourceNotFoundException"),
        (400, "com.amazonaws.logs#ResourceNotFoundException", "ResourceNotFoundException"),
        (400, "InvalidParameterException:http://internal.amazon.com/", "InvalidParameterException"),
        (400, "ExpiredTokenException", "ExpiredTokenException"),
        (400, "UnrecognizedClientException", "UnrecognizedClientException"),
        (400, "AccessDeniedException", "AccessDeniedException"),
        (500, "InternalFailure", "InternalFailure"),
        (503, "ServiceUnavailableException", "ServiceUnavailableException"),
    ] {
        let mut bench = Bench::new(move |_| refusal(status, name)).await;
        let error = service(bench.put_one().await);
        assert_eq!((error.status, error.code.as_str(), error.message.as_str()), (status, code, "told so"));
        assert_eq!(bench.requests().len(), 1, "{code} was tried again");
    }
}

#[tokio::test]
async fn the_other_calls_are_refused_in_the_same_way() {
    let mut bench = Bench::new(|_| refusal(400, "ResourceAlreadyExistsException")).await;
    for answer in [
        bench.caller.create_log_group("/app".into(), None, vec![], None).await.unwrap(),
        bench.caller.create_log_stream("/app".into(), "s".into()).await.unwrap(),
        bench.caller.put_retention_policy("/app".into(), 7).await.unwrap(),
    ] {
        let error = service(answer);
        assert_eq!((error.status, error.code.as_str()), (400, "ResourceAlreadyExistsException"));
    }
    assert_eq!(bench.requests().len(), 3);
}

#[tokio::test]
async fn a_refusal_that_is_no_json_is_still_one() {
    let mut bench = Bench::new(|_| (StatusCode::BAD_GATEWAY, "<html>proxy").into_response()).await;
    let error = service(bench.put_one().await);
    assert_eq!((error.status, error.code.as_str()), (502, ""));
}

#[tokio::test]
async fn what_the_service_asks_to_wait_is_told() {
    let mut bench = Bench::new(|_| ([("retry-after", "7")], refusal(400, "ThrottlingException")).into_response()).await;
    assert_eq!(service(bench.put_one().await).retry_after_ms, Some(7000));
}

#[tokio::test]
async fn a_success_that_makes_no_sense_is_none() {
    let mut bench = Bench::new(|_| answer("<html>login here")).await;
    assert!(matches!(bench.put_one().await, Err(Error::Connection(_))));
}

/// A server that does this with its first connection, and takes no other.
async fn first_connection<F>(then: impl FnOnce(TcpStream) -> F + Send + 'static) -> Bench
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        then(stream).await;
    });
    let aws = AwsConfig { endpoint, request_timeout: Some(Duration::from_secs(30)), ..AwsConfig::default() };
    Bench::at(aws, Arc::default())
}

async fn connection_error(mut bench: Bench) -> String {
    match bench.put_one().await {
        Err(Error::Connection(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Reads up to the end of the request's head and the whole of its content.
async fn read_request(stream: &mut TcpStream) {
    let mut read = Vec::new();
    loop {
        stream.read_buf(&mut read).await.unwrap();
        let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
        let Some((head, content)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split_once("content-length: ").unwrap().1.lines().next().unwrap().parse::<usize>().unwrap();
        if content.len() >= length {
            return;
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_is_no_answer() {
    // What was not read makes the kernel send a reset.
    let bench = first_connection(async |stream| {
        stream.readable().await.unwrap();
        drop(stream);
    })
    .await;
    connection_error(bench).await;
}

#[tokio::test]
async fn a_lost_reply_is_no_answer() {
    let closed = first_connection(async |mut stream| read_request(&mut stream).await).await;
    connection_error(closed).await;
    let cut = first_connection(async |mut stream| {
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"rej").await.unwrap();
    })
    .await;
    connection_error(cut).await;
}

#[tokio::test]
async fn a_service_that_is_not_there_is_no_answer() {
    // Bound and closed: nobody listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let aws = AwsConfig { endpoint: Some(format!("http://{free}")), ..AwsConfig::default() };
    let text = connection_error(Bench::at(aws, Arc::default())).await;
    assert!(text.to_lowercase().contains("refused"), "{text}");
}

#[tokio::test]
async fn a_server_that_stays_silent_runs_into_the_request_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let aws = AwsConfig {
        endpoint: Some(format!("http://{}", silent.local_addr().unwrap())),
        request_timeout: Some(Duration::from_millis(100)),
        ..AwsConfig::default()
    };
    let text = connection_error(Bench::at(aws, Arc::default())).await;
    assert!(text.contains("timeout") || text.contains("timed out"), "{text}");
}

#[tokio::test]
async fn credentials_that_cannot_be_had_are_told_apart_from_a_broken_line() {
    use aws_credential_types::provider::{ProvideCredentials, error::CredentialsError, future};

    #[derive(Debug)]
    struct None;
    impl ProvideCredentials for None {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            future::ProvideCredentials::ready(Err(CredentialsError::not_loaded("no profile named x")))
        }
    }
    let aws = AwsConfig { endpoint: Some("http://127.0.0.1:9".into()), ..AwsConfig::default() };
    let mut bench = Bench::over(Connection::with_credentials(aws, None), Arc::default());
    match bench.put_one().await {
        Err(Error::Credentials(text)) => assert!(text.contains("no profile named x"), "{text}"),
        other => panic!("{other:?}"),
    }
}
