//! An upstream that notes every request and answers by script, byte for byte.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::http::{Message, Reader};

/// What an upstream does, in order.
#[derive(Clone)]
pub enum Step {
    /// Writes these bytes.
    Send(Vec<u8>),
    /// Waits until the test opens the gate.
    Wait(Gate),
    /// Waits for a while.
    Pause(Duration),
    /// Closes the connection properly.
    Close,
    /// Tears the connection down.
    Reset,
    /// Says nothing more until the other side closes, then notes that.
    UntilClosed(Sender<()>),
}

/// A gate between a test and an upstream.
#[derive(Clone)]
pub struct Gate(Arc<(Sender<()>, Mutex<Receiver<()>>)>);

impl Gate {
    pub fn new() -> Self {
        let (open, opened) = channel();
        Self(Arc::new((open, Mutex::new(opened))))
    }

    pub fn open(&self) {
        self.0.0.send(()).unwrap();
    }

    fn wait(&self) {
        let opened = self.0.1.lock().unwrap();
        opened
            .recv_timeout(Duration::from_secs(20))
            .expect("the gate never opened");
    }
}

type Script = dyn Fn(&Message) -> Vec<Step> + Send + Sync;

/// A running upstream.
pub struct Tap {
    address: SocketAddr,
    seen: Mutex<Receiver<Message>>,
}

impl Tap {
    /// Answers every request by `script`.
    pub fn start(script: impl Fn(&Message) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (note, seen) = channel();
        let script: Arc<Script> = Arc::new(script);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, script, note) = (stream.unwrap(), script.clone(), note.clone());
                std::thread::spawn(move || serve(stream, &*script, &note));
            }
        });
        Self {
            address,
            seen: Mutex::new(seen),
        }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request it saw.
    pub fn seen(&self) -> Message {
        let seen = self.seen.lock().unwrap();
        seen.recv_timeout(Duration::from_secs(20))
            .expect("no request reached upstream")
    }

    /// The next request it saw, if there is one.
    pub fn try_seen(&self) -> Option<Message> {
        self.seen.lock().unwrap().try_recv().ok()
    }

    /// Whether nothing (more) has been seen.
    pub fn saw_nothing(&self) -> bool {
        self.try_seen().is_none()
    }
}

fn serve(mut stream: TcpStream, script: &Script, note: &Sender<Message>) {
    stream.set_nodelay(true).unwrap();
    let mut reader = Reader::new(stream.try_clone().unwrap());
    while let Ok(Some(mut message)) = reader.head() {
        let whole = reader.body(&mut message, false).is_ok() && message.complete;
        let steps = if whole {
            script(&message)
        } else {
            vec![Step::Close]
        };
        let _ = note.send(message);
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).is_err() {
                        return;
                    }
                }
                Step::Wait(gate) => gate.wait(),
                Step::Pause(time) => std::thread::sleep(time),
                Step::Close => return,
                Step::Reset => {
                    let socket = socket2::SockRef::from(&stream);
                    socket.set_linger(Some(Duration::ZERO)).unwrap();
                    return;
                }
                Step::UntilClosed(closed) => {
                    while reader.some().is_ok_and(|read| !read.is_empty()) {}
                    let _ = closed.send(());
                    return;
                }
            }
        }
    }
}
