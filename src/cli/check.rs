//! `longhaul check`: is this configuration valid, and what does it come to?
//!
//! The effective configuration goes to standard output as TOML that loads
//! again, secrets masked. Mistakes go to standard error, a line each, and the
//! exit code is 2.

use super::{BAD_CONFIGURATION, OverrideArgs};
use crate::config::{Sources, load_to_serve};
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments of `longhaul check`.
#[derive(Clone, Default, clap::Args)]
pub struct CheckArgs {
    /// What overrides the configuration.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Checks the configuration of this process and prints it.
pub fn run(args: CheckArgs) -> io::Result<ExitCode> {
    let sources = args.overrides.into_sources();
    check(&sources, &mut io::stdout().lock(), &mut io::stderr().lock())
}

fn check(sources: &Sources, out: &mut impl Write, errors: &mut impl Write) -> io::Result<ExitCode> {
    match load_to_serve(sources) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                writeln!(errors, "warning: {warning}")?;
            }
            out.write_all(loaded.to_toml().as_bytes())?;
            out.flush()?;
            Ok(ExitCode::SUCCESS)
        }
        Err(problems) => {
            writeln!(errors, "{problems}")?;
            Ok(ExitCode::from(BAD_CONFIGURATION))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;

    fn check_with(listen: &str) -> (ExitCode, String, String) {
        let sources = Sources {
            environment: vec![("LONGHAUL_LIMT".to_owned(), "1".to_owned())],
            flags: Flags {
                listen: Some(listen.to_owned()),
                data_dir: Some("/data".to_owned()),
                ..Flags::default()
            },
            ..Sources::default()
        };
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let code = check(&sources, &mut out, &mut errors).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (code, text(out), text(errors))
    }

    #[test]
    fn a_valid_configuration_is_printed_and_warnings_go_elsewhere() {
        let (code, out, errors) = check_with("[::1]:0");
        assert_eq!(code, ExitCode::SUCCESS);
        assert!(
            out.starts_with("listen = \"[::1]:0\"  # flag --listen\n"),
            "{out}"
        );
        assert_eq!(
            errors,
            "warning: unknown environment variable LONGHAUL_LIMT\n"
        );
    }

    #[test]
    fn mistakes_are_printed_alone_and_exit_with_2() {
        let (code, out, errors) = check_with("nowhere");
        assert_eq!(code, ExitCode::from(2));
        assert_eq!(out, "");
        assert!(
            errors.starts_with("flag --listen: listen = nowhere: expected "),
            "{errors}"
        );
        assert_eq!(errors.lines().count(), 1);
    }
}
