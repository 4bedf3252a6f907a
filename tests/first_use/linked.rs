//! The link to the page that `longhaul run` shows on a terminal.

use std::process::Command;

use crate::world::{LONGHAUL, World, errors, out};

/// Follows the link that appears on a terminal, as a person with a browser does.
const FOLLOWS: &str = r#"
import http.cookiejar, os, pty, re, sys, urllib.request
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen, status = b"", "no link"
while True:
    try:
        seen += os.read(terminal, 65536)
    except OSError:
        break
    link = re.search(rb"sessions at (http://\S+)\r\n", seen)
    if link and not os.path.exists("go"):
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)
        try:
            answer = opener.open(link[1].decode(), timeout=60)
            status = f"{answer.status} {answer.url.split('/', 3)[3]}"
        except urllib.error.HTTPError as error:
            status = str(error)
        open("go", "w").close()
print(status)
os.waitpid(child, 0)
"#;

/// With an admin token the page wants it, and nobody can type it into a link.
#[test]
fn the_link_on_the_terminal_opens_the_page_with_and_without_a_token() {
    for token in [None, Some("3f9c1d7ab2e84c5fa6d0")] {
        let world = World::new();
        let mut command = Command::new("python3");
        command.args(["-c", FOLLOWS, LONGHAUL, "run", "--store", "memory", "--"]);
        // A command that never sees the file ends all the same.
        command.args([
            "sh",
            "-c",
            "for i in $(seq 1200); do [ -e go ] && exit; sleep 0.05; done",
        ]);
        world.settle(&mut command);
        if let Some(token) = token {
            command.env("LONGHAUL_ADMIN_TOKEN", token);
        }
        let output = command.output().unwrap();
        assert_eq!(
            out(&output),
            "200 longhaul/\n",
            "{token:?} {}",
            errors(&output)
        );
    }
}
