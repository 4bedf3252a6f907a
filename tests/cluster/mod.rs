//! A PostgreSQL server for the time of a test run, started by the tests
//! themselves: a folder of its own, a socket in it, no network.
//!
//! The server refuses to run as root, so there it runs as nobody. A shell stands
//! between the tests and the server and waits for its standard input to end: so
//! the server goes and its folder with it however the tests end, killed too.
//! Where there is no PostgreSQL, the tests that want one say so and pass.

#![allow(dead_code, reason = "each suite uses a part of it")]

mod pooler;
mod relay;

#[allow(unused_imports, reason = "each suite uses a part of it")]
pub use pooler::Pooler;
#[allow(unused_imports, reason = "each suite uses a part of it")]
pub use relay::Relay;

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};

/// Nobody, where the tests run as root.
const NOBODY: u32 = 65534;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Quick before safe: none of these servers outlives its tests.
const SETTINGS: &str = "listen_addresses = ''\nfsync = off\nfull_page_writes = off\n\
    max_connections = 300\nshared_buffers = 32MB\nmax_wal_size = 256MB\nlog_min_messages = fatal\n\
    max_wal_senders = 4\nwal_level = replica\nhot_standby = on\n";

/// A server with a folder of its own.
pub struct Cluster {
    tools: PathBuf,
    folder: PathBuf,
    port: u16,
    running: Option<Child>,
    databases: AtomicU32,
}

impl Cluster {
    /// The server that all tests of a binary share, if there is one to be had.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// A server of its own, if there is one to be had.
    pub fn start() -> Option<Self> {
        let mut cluster = Self::made()?;
        cluster.resume();
        Some(cluster)
    }

    /// One that also listens on this machine's loopback, and there speaks only in
    /// private, with this certificate.
    pub fn encrypted(certificate: &Path, key: &Path) -> Option<Self> {
        let mut cluster = Self::made()?;
        cluster.port = free_port();
        let data = cluster.data();
        for (from, to) in [(certificate, "server.crt"), (key, "server.key")] {
            std::fs::copy(from, data.join(to)).unwrap();
            let only_ours = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(data.join(to), only_ours).unwrap();
            give(&data.join(to));
        }
        let settings = format!("{SETTINGS}listen_addresses = '127.0.0.1'\nssl = on\n");
        std::fs::write(data.join("postgresql.auto.conf"), settings).unwrap();
        let access = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
        std::fs::write(data.join("pg_hba.conf"), access).unwrap();
        cluster.resume();
        Some(cluster)
    }

    /// The port in its name, and on the network if it listens there.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of a server that does not run yet.
    fn made() -> Option<Self> {
        let Some(tools) = tools() else {
            println!("skipped: no PostgreSQL on this machine");
            return None;
        };
        let cluster = Self::new(tools);
        let data = cluster.data();
        let mut made = cluster.tool("initdb");
        made.args(["--auth=trust", "--username=tests", "--encoding=UTF8"])
            .args(["--locale=C", "--no-sync", "-D"])
            .arg(&data);
        done(&mut made);
        std::fs::write(data.join("postgresql.auto.conf"), SETTINGS).unwrap();
        give(&data.join("postgresql.auto.conf"));
        Some(cluster)
    }

    /// A standby that follows this server.
    pub fn standby(&self) -> Self {
        let mut standby = Self::new(self.tools.clone());
        let mut copy = standby.tool("pg_basebackup");
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"])
            .args(["--username=tests", "-h"])
            .arg(&self.folder)
            .arg("-D")
            .arg(standby.data());
        done(&mut copy);
        standby.resume();
        standby
    }

    fn new(tools: PathBuf) -> Self {
        // Not where temporary files usually go, whose path may be too long for a
        // socket.
        let folder = tempfile::Builder::new()
            .prefix("lh-pg-")
            .tempdir_in("/tmp")
            .unwrap()
            .keep();
        let only_ours = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&folder, only_ours).unwrap();
        give(&folder);
        Self {
            tools,
            folder,
            port: 5432,
            running: None,
            databases: AtomicU32::new(0),
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn tool(&self, name: &str) -> Command {
        let mut tool = as_nobody(&self.tools.join(name), &self.folder);
        tool.env("PGPORT", self.port.to_string());
        tool
    }

    /// Starts the server, if it does not run.
    pub fn resume(&mut self) {
        if self.running.is_some() {
            return;
        }
        let mut shell = as_nobody(Path::new("/bin/sh"), &self.folder);
        let script = r#""$0" -D "$1/data" -k "$1" -p "$2" > "$1/log" 2>&1 & server=$!
            read end
            kill -QUIT $server
            wait $server
            [ "$end" = stop ] || rm -rf "$1""#;
        shell
            .arg("-c")
            .arg(script)
            .arg(self.tools.join("postgres"))
            .arg(&self.folder)
            .arg(self.port.to_string())
            .stdin(Stdio::piped())
            .process_group(0);
        self.running = Some(shell.spawn().unwrap());
        let begun = Instant::now();
        loop {
            let mut asked = self.tool("pg_isready");
            asked.arg("-q").arg("-h").arg(&self.folder);
            if asked.status().unwrap().success() {
                return;
            }
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "no server: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server as a power cut would.
    pub fn stop(&mut self) {
        use std::io::Write;
        if let Some(mut shell) = self.running.take() {
            shell.stdin.take().unwrap().write_all(b"stop\n").unwrap();
            shell.wait().unwrap();
        }
    }

    /// Makes the server hang: it neither answers nor goes away.
    pub fn freeze(&self, frozen: bool) {
        let pid = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap();
        let signal = if frozen { "-STOP" } else { "-CONT" };
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap();
        // Its children go first, so that it starts no new ones meanwhile.
        for pid in children.split_whitespace().chain([pid]) {
            Command::new("kill").args([signal, pid]).status().unwrap();
        }
    }

    /// A new, empty database; its URL.
    pub async fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        let mut connection = raw(&self.url("postgres")).await;
        execute(&mut connection, &format!("CREATE DATABASE {name}")).await;
        self.url(&name)
    }

    /// Everything in a database, as SQL.
    pub fn dump(&self, database: &str) -> String {
        let mut dump = self.tool("pg_dump");
        dump.args(["--no-owner", "--no-privileges", "--inserts"])
            .args(["--rows-per-insert=100", "--username=tests", "-h"])
            .arg(&self.folder)
            .arg(database);
        let output = dump.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        let folder = self.folder.to_str().unwrap().replace('/', "%2F");
        format!("postgres://tests@{folder}:{}/{database}", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut shell) = self.running.take() {
            drop(shell.stdin.take());
            let _ = shell.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A connection past the store.
pub async fn raw(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().unwrap();
    options.connect().await.unwrap()
}

/// Carries out a statement past the store.
pub async fn execute(connection: &mut PgConnection, sql: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    statement.execute(connection).await.unwrap();
}

/// A number that a statement finds past the store.
pub async fn number(connection: &mut PgConnection, sql: &str) -> i64 {
    use sqlx::Row;
    let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    let row = statement.fetch_one(connection).await.unwrap();
    row.get(0)
}

/// Where the programs of the server are.
fn tools() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut versions: Vec<_> = versions.flatten().map(|found| found.path()).collect();
    versions.sort();
    let versions = versions
        .into_iter()
        .rev()
        .map(|version| version.join("bin"));
    let mut folders = versions.chain(std::env::split_paths(&path));
    folders.find(|folder| {
        let programs = ["initdb", "postgres", "pg_isready", "pg_basebackup"];
        programs.iter().all(|name| folder.join(name).exists())
    })
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn give(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn as_nobody(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}
