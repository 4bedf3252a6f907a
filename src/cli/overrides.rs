//! The flags that override the configuration, shared by the commands that
//! load one.
//!
//! Their values are taken as text and checked with everything else, so that a
//! wrong flag is reported beside a wrong line of the file.

use crate::config::{Flags, Sources};
use std::path::PathBuf;

/// Flags over environment over file over defaults. Not printable: the URL of a
/// store may hold a password.
#[derive(Clone, Default, clap::Args)]
pub struct OverrideArgs {
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// API to forward to
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Folder for Longhaul's own files
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Where state is kept: sqlite, memory or a postgres:// URL
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

impl OverrideArgs {
    /// These flags together with the environment of the process.
    pub fn into_sources(self) -> Sources {
        let variables = std::env::vars_os();
        // A variable that is no text would otherwise be a panic; read with
        // replacement characters it is refused like any other wrong value.
        let environment = variables.map(|(name, value)| {
            let text = |part: std::ffi::OsString| part.to_string_lossy().into_owned();
            (text(name), text(value))
        });
        Sources {
            file: self.config,
            environment: environment.collect(),
            flags: Flags {
                listen: self.listen,
                upstream: self.upstream,
                data_dir: self.data_dir,
                store: self.store,
                ..Flags::default()
            },
        }
    }
}
