//! A bare relay on hyper: the least that a proxy which reads whole bodies can do.
//!
//! It takes the body in, sends it on, and streams the answer back as it arrives;
//! it looks at nothing. Threads and connections are dealt out as in Longhaul: a
//! runtime a core, connections in turn, and each has a connection of its own to
//! upstream. The benchmark starts it as a process of its own, so that its
//! processor time and memory can be read.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::sync::mpsc::unbounded_channel;

/// Listens on a free port, prints it, and serves until it is killed.
pub fn run(upstream: SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "{}", listener.local_addr().unwrap()).unwrap();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers: Vec<_> = (0..cores)
        .map(|_| {
            let (sender, mut inbox) = unbounded_channel::<std::net::TcpStream>();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(async move {
                    while let Some(stream) = inbox.recv().await {
                        let stream = TcpStream::from_std(stream).unwrap();
                        tokio::spawn(serve(stream, upstream));
                    }
                });
            });
            sender
        })
        .collect();
    for worker in workers.iter().cycle() {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        worker.send(stream).unwrap();
    }
}

async fn serve(stream: TcpStream, upstream: SocketAddr) {
    let up = TcpStream::connect(upstream).await.unwrap();
    up.set_nodelay(true).unwrap();
    let (sender, connection) = handshake(TokioIo::new(up)).await.unwrap();
    tokio::spawn(connection);
    let sender = Arc::new(Mutex::new(sender));
    let service = service_fn(move |request| forward(sender.clone(), request));
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn forward(
    sender: Arc<Mutex<SendRequest<Full<Bytes>>>>,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, Infallible> {
    let (parts, mut body) = request.into_parts();
    let length = body.size_hint().exact().unwrap_or(0);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap());
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.unwrap().into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    let request = Request::from_parts(parts, Full::new(Bytes::from(bytes)));
    let mut sender = sender.lock().await;
    sender.ready().await.unwrap();
    Ok(sender.send_request(request).await.unwrap())
}
