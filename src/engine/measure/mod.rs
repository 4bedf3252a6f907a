//! How large a prompt is, in tokens, before upstream has said so.
//!
//! The tokenizers of the models are not public. A public vocabulary stands in
//! for them, and what it counts is called *raw*; a factor per model, learned
//! from the usage that upstream reports, makes tokens of it. Once a request of a
//! conversation has been answered its size is known exactly, and only what was
//! added since is estimated. An estimate that is too low wedges a session, one
//! that is too high costs a little room: every rule here rounds up.
//!
//! | step | module |
//! |---|---|
//! | the vocabulary, guarded | `tokenizer` |
//! | text as it stands in a body | `text` |
//! | how much of it is counted | `counter` |
//! | blocks, messages, system, tools | `parts`, `media`, `prompt` |
//! | raw to tokens | `factor`, `prior` |
//! | what upstream last said, and what is new | `anchor` |
//! | what fits | `window` |
//! | what upstream has said of that | `learned_windows` |

mod anchor;
mod counter;
mod factor;
mod learned_windows;
mod media;
mod parts;
mod prior;
mod prompt;
mod raw;
mod text;
mod tokenizer;
mod window;

pub use anchor::{Anchor, Exactness, Measured, learn, measure};
pub use counter::{BUDGET, Counter};
pub use factor::{Factor, Observed};
pub use learned_windows::{Account, LearnedWindow, LearnedWindows, WindowKey};
pub use prior::prior;
pub use prompt::{
    Base, CONVERSATION, Size, raw_base, raw_block, raw_message, raw_prompt, raw_value, weight,
};
pub use raw::Raw;
pub use tokenizer::warm;
pub use window::{Limits, Verdict, fits};
