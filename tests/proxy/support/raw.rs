//! An upstream of bare connections, for what a script of steps cannot say.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// Starts an upstream that does `serve` with each connection; its URL.
pub fn raw(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
    url
}

/// Reads until the other side ends the connection.
pub fn swallow(stream: &mut TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(1..) = stream.read(&mut buffer) {}
}
