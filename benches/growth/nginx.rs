//! nginx as a plain reverse proxy, set up the way its users do for this API.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running nginx; ends when dropped.
pub struct Nginx {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Nginx {
    /// Starts it in `folder`, if it is installed. It takes a body in whole, in
    /// memory, before it passes it on, as it does by default and Longhaul must.
    pub fn start(folder: &Path, upstream: SocketAddr) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let here = folder.display();
        let text = format!(
            "daemon off; worker_processes auto; pid {here}/nginx.pid; error_log {here}/error.log;
             events {{ worker_connections 1024; }}
             http {{
               access_log off; client_max_body_size 64m; client_body_buffer_size 16m;
               client_body_temp_path {here}/body; proxy_temp_path {here}/proxy;
               fastcgi_temp_path {here}/f; uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
               keepalive_requests 1000000;
               upstream up {{ server {upstream}; keepalive 64; keepalive_requests 1000000; }}
               server {{
                 listen {address};
                 location / {{
                   proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection \"\";
                   proxy_buffering off; proxy_request_buffering on;
                 }}
               }}
             }}"
        );
        let file = folder.join("nginx.conf");
        std::fs::write(&file, text).unwrap();
        let child = Command::new("nginx")
            .args(["-c".as_ref(), file.as_os_str()])
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let started = Self { child, address };
        for _ in 0..100 {
            if TcpStream::connect(address).is_ok() {
                return Some(started);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        None
    }

    /// The id of its master process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master must end its workers itself.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let _ = self.child.wait();
    }
}
