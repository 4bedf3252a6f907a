//! Settings with a closed set of words.
//!
//! Each is an enum with the words it is written as; the words are the
//! contract, the variants are ours.

/// An enum whose values are chosen by word.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every word and what it chooses.
    const WORDS: &'static [(&'static str, Self)];

    /// The word this value is written as.
    fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            // Every variant has its word: see the test of this file.
            .map_or("", |(word, _)| word)
    }
}

macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $( $(#[$meaning:meta])* $variant:ident = $word:literal, )* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $( $(#[$meaning])* $variant, )* }

        impl Choice for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$( ($word, Self::$variant), )*];
        }
    };
}

choice! {
    /// What happens to requests that open a thread held by the server.
    Threads {
        /// The client is told to resend its history instead.
        Decline = "decline",
        /// Forwarded and not managed.
        Pass = "pass",
    }
}

choice! {
    /// Whether views are changed.
    Mode {
        /// Decide and act.
        On = "on",
        /// Decide and report, change nothing.
        Observe = "observe",
        /// Start no new pass.
        Off = "off",
    }
}

choice! {
    /// What to weigh more, cost or memory.
    Aim {
        /// Only what is superseded, repeated or free goes.
        Faithful = "faithful",
        /// What no longer pays for itself goes; much stays verbatim.
        Balanced = "balanced",
        /// The same, with less kept verbatim.
        Thrifty = "thrifty",
    }
}

choice! {
    /// How a long history is kept small.
    Style {
        /// Clear, trim and summarize.
        Compact = "compact",
        /// A short live buffer; everything older only by recall.
        Journal = "journal",
    }
}

choice! {
    /// Where the tail starts.
    SplitBy {
        /// At the last turns.
        RecentTurns = "recent-turns",
        /// At a share of the tokens.
        TokenFraction = "token-fraction",
        /// At the user's newest messages.
        UserMessages = "user-messages",
        /// At a fixed number of messages.
        TailMessages = "tail-messages",
    }
}

choice! {
    /// Who writes the summaries.
    SummarizerMode {
        /// The cheapest that fits.
        Auto = "auto",
        /// The API's own compaction.
        Native = "native",
        /// The same model on the prefix it has cached.
        Fork = "fork",
        /// Another model on a trimmed transcript.
        Model = "model",
        /// Nobody: no model is ever asked.
        Off = "off",
    }
}

choice! {
    /// Who places cache marks.
    Breakpoints {
        /// Longhaul, where a pass moved things.
        Auto = "auto",
        /// Only the client.
        Respect = "respect",
    }
}

choice! {
    /// Whether stubs and segments tell the model of the recall tools.
    RecallMcp {
        /// When the request's tools contain them.
        Auto = "auto",
        /// In every request.
        Always = "true",
        /// In none.
        Never = "false",
    }
}

choice! {
    /// The form of log lines.
    LogFormat {
        /// Text on a terminal, JSON otherwise.
        Auto = "auto",
        /// For people.
        Text = "text",
        /// For machines.
        Json = "json",
    }
}

choice! {
    /// The least important events still logged.
    LogLevel {
        /// Nothing at all.
        Off = "off",
        /// What failed.
        Error = "error",
        /// What may need attention.
        Warn = "warn",
        /// What happened.
        Info = "info",
        /// Why it happened.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_word_of_its_own() {
        fn check<E: Choice + std::fmt::Debug>() {
            for (word, value) in E::WORDS {
                assert_eq!(value.word(), *word, "{value:?}");
            }
        }
        check::<Threads>();
        check::<Mode>();
        check::<Style>();
        check::<SplitBy>();
        check::<SummarizerMode>();
        check::<Breakpoints>();
        check::<RecallMcp>();
        check::<LogFormat>();
        check::<LogLevel>();
    }
}
