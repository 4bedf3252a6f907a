//! A pooler before a server of the tests: a few sessions of the server's, and each
//! transaction of a client's on any of them.

use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use super::{Cluster, PATIENCE, as_nobody, free_port, give};

/// A running pooler; ends when dropped.
pub struct Pooler {
    shell: Child,
    port: u16,
}

impl Pooler {
    /// Starts one, if it is installed.
    pub fn before(cluster: &Cluster) -> Option<Self> {
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        let Some(program) = program.iter().find(|path| Path::new(path).exists()) else {
            println!("skipped: no pgbouncer on this machine");
            return None;
        };
        let (here, port) = (cluster.folder.display(), free_port());
        let settings = format!(
            "[databases]\n* = host={here} port={} user=tests\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n\
             max_client_conn = 300\nlogfile = {here}/pooler.log\n",
            cluster.port,
        );
        let file = cluster.folder.join("pooler.ini");
        std::fs::write(&file, settings).unwrap();
        give(&file);
        // As with the server: it goes however the tests end.
        let mut shell = as_nobody(Path::new("/bin/sh"), &cluster.folder);
        let script = r#""$0" -q "$1" & pooler=$!
            read end
            kill -INT $pooler
            wait $pooler"#;
        shell.args(["-c", script, program]).arg(&file);
        shell.stdin(Stdio::piped()).process_group(0);
        let shell = shell.spawn().unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "no pooler");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Some(Self { shell, port })
    }

    /// The URL of a database through it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://tests@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
