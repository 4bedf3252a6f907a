//! `longhaul check`: is this configuration valid, and what does it come to?
//!
//! The effective configuration goes to standard output as TOML that loads
//! again, secrets masked. Mistakes go to standard error, a line each, and the
//! exit code is 2.

use super::OverrideArgs;
use crate::config::{Sources, load};
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments of `longhaul check`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct CheckArgs {
    /// What overrides the configuration.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Bad usage or configuration.
const BAD_CONFIGURATION: u8 = 2;

/// Checks the configuration of this process and prints it.
pub fn run(args: CheckArgs) -> io::Result<ExitCode> {
    let sources = args.overrides.into_sources();
    check(&sources, &mut io::stdout().lock(), &mut io::stderr().lock())
}

fn check(sources: &Sources, out: &mut impl Write, errors: &mut impl Write) -> io::Result<ExitCode> {
    match load(sources) {
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
