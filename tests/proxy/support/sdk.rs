//! The official SDKs, installed as people install them.
//!
//! They come from their registries, pinned, and are kept in the target folder
//! between runs.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The key that the SDKs send.
pub const KEY: &str = "sk-ant-test";

/// An SDK, installed.
pub struct Sdk {
    program: PathBuf,
    script: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl Sdk {
    pub fn python() -> Self {
        Self::in_python("python", "session.py")
    }

    /// The official SDK of the protocol that the tools speak.
    pub fn mcp() -> Self {
        Self::in_python("mcp", "tools.py")
    }

    fn in_python(folder: &str, script: &str) -> Self {
        let source = sources(folder);
        let requirements = source.join("requirements.txt");
        let version = run(Command::new("python3").arg("-VV"));
        let pins = fs::read(&requirements).unwrap();
        // What is installed is compiled for one version of the language.
        let folder = installed(folder, &[&pins, &version.stdout], |folder| {
            let pip = |python: &Path| {
                let mut command = Command::new(python);
                command.args(["-m", "pip", "install", "--quiet", "--no-input"]);
                command.args(["--disable-pip-version-check", "-r"]);
                command.arg(&requirements);
                command
            };
            let environment = folder.join("environment");
            let made = Command::new("python3")
                .args(["-m", "venv"])
                .arg(&environment)
                .output()
                .is_ok_and(|made| made.status.success());
            if made {
                run(&mut pip(&environment.join("bin/python")));
            } else {
                // Some systems ship Python without what an environment needs.
                let _ = fs::remove_dir_all(&environment);
                run(pip(Path::new("python3"))
                    .arg("--target")
                    .arg(folder.join("packages")));
            }
            true
        });
        let own = folder.join("environment/bin/python");
        let packages = folder.join("packages");
        Self {
            program: if own.exists() { own } else { "python3".into() },
            script: source.join(script),
            variables: if packages.exists() {
                vec![("PYTHONPATH", packages.into_os_string())]
            } else {
                Vec::new()
            },
        }
    }

    pub fn typescript() -> Self {
        Self::in_node("typescript", "session.mjs")
    }

    /// What drives a browser.
    pub fn browser() -> Self {
        Self::in_node("browser", "page.mjs")
    }

    fn in_node(folder: &str, script: &str) -> Self {
        let source = sources(folder);
        let files = ["package.json", "package-lock.json"];
        let pins = files.map(|name| fs::read(source.join(name)).unwrap());
        let folder = installed(folder, &[&pins[0], &pins[1]], |folder| {
            for (name, content) in files.iter().zip(&pins) {
                fs::write(folder.join(name), content).unwrap();
            }
            run(Command::new("npm")
                .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
                .current_dir(folder));
            true
        });
        // Packages are looked for beside the script, so it stands beside them.
        let session = fs::read(source.join(script)).unwrap();
        let hash = blake3::hash(&session).to_hex();
        let script = folder.join(format!("{}-{script}", &hash[..16]));
        replace(&script, &session);
        Self {
            program: "node".into(),
            script,
            variables: Vec::new(),
        }
    }

    /// Runs these checks, or all; the lines it printed.
    pub fn session(&self, base: &str, simulator: &str, checks: &[&str]) -> Vec<String> {
        let variables = [
            ("ANTHROPIC_BASE_URL", base),
            ("ANTHROPIC_API_KEY", KEY),
            ("SIM_URL", simulator),
        ];
        self.run(&variables, checks)
    }

    /// Runs the script with these variables; the lines it printed.
    pub fn run(&self, variables: &[(&str, &str)], checks: &[&str]) -> Vec<String> {
        let output = run(&mut self.command(&[], variables, checks));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert!(!lines.is_empty(), "the session checked nothing");
        assert!(lines.iter().all(|line| line.starts_with("ok ")), "{text}");
        lines
    }

    /// The command that runs the script, behind another one if there is one.
    pub fn command(&self, before: &[&str], variables: &[(&str, &str)], checks: &[&str]) -> Command {
        let own = self.program.as_os_str();
        let mut words = before.iter().map(OsStr::new).chain([own]);
        let mut command = Command::new(words.next().unwrap_or(own));
        command.args(words).arg(&self.script).args(checks);
        // Settings of whoever runs the tests would reach the SDK.
        for (name, _) in std::env::vars_os() {
            let upper = name.to_string_lossy().to_uppercase();
            if upper.starts_with("ANTHROPIC_") || upper.ends_with("_PROXY") {
                command.env_remove(name);
            }
        }
        command
            .envs(self.variables.iter().cloned())
            .envs(variables.iter().copied())
            .env("PYTHONIOENCODING", "utf-8")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// The script that starts Claude Code, installed; `None` where npm cannot install
/// it, or there is no program for this machine.
pub fn claude_code() -> Option<PathBuf> {
    let source = sources("claude_code");
    let files = ["package.json", "package-lock.json"];
    let pins = files.map(|name| fs::read(source.join(name)).unwrap());
    let mut is_there = true;
    let folder = installed("claude_code", &[&pins[0], &pins[1]], |folder| {
        for (name, content) in files.iter().zip(&pins) {
            fs::write(folder.join(name), content).unwrap();
        }
        let made = Command::new("npm")
            .args([
                "ci",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--fetch-retries=1",
            ])
            .current_dir(folder)
            .output();
        is_there = made.is_ok_and(|made| made.status.success());
        is_there
    });
    let script = folder.join("node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs");
    let version = Command::new("node").arg(&script).arg("--version").output();
    let runs = version.is_ok_and(|version| version.status.success());
    (is_there && runs).then_some(script)
}

fn sources(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clients")
        .join(language)
}

/// Writes a file so that nobody sees half of it.
fn replace(path: &Path, content: &[u8]) {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
    file.write_all(content).unwrap();
    file.persist(path).unwrap();
}

/// Runs a command to its good end.
fn run(command: &mut Command) -> Output {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("these tests need {name}, which cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{name} ended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The folder that belongs to these pins; made by `install` if it is not there,
/// which says whether it could.
fn installed(language: &str, pins: &[&[u8]], install: impl FnOnce(&Path) -> bool) -> PathBuf {
    let hash = blake3::hash(&pins.concat()).to_hex();
    let clients = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("clients");
    fs::create_dir_all(&clients).unwrap();
    let folder = clients.join(format!("{language}-{}", &hash[..16]));
    // Another test, or another run of the tests, may be at it.
    let lock = fs::File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let complete = folder.join("complete");
    if !complete.exists() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        if install(&folder) {
            fs::write(complete, "").unwrap();
        }
    }
    folder
}
