//! Plays recorded conversations through the proxy, against the simulator.
//!
//! What would Longhaul have done with this session, what would it have cost, and
//! would the agent still have known what it needed? A recording answers that
//! without a key and without a network: it is played as a growing conversation,
//! once without the proxy and once with it, and both are billed.
//!
//! | step | modules |
//! |---|---|
//! | what was said | `read`, `recording`, `session` |
//! | what is sent | `around`, `history`, `line` |
//! | under which conditions | `settings`, `conditions` |
//! | playing | `play`, `all` |
//! | what was lost | `probes`, `plant`, `watch`, `reread`, `reach` |
//! | what a view has | `tokens`, `lines`, `index`, `inserted`, `edits`, `rules`, `values`, `quality` |
//! | what could be saved at best | `hindsight` |
//! | what is told | `signals`, `figures`, `report` |

pub mod all;
pub mod around;
pub mod assignments;
pub mod conditions;
pub mod edits;
pub mod figures;
pub mod hindsight;
pub mod history;
pub mod index;
pub mod inserted;
pub mod line;
pub mod lines;
pub mod plant;
pub mod play;
pub mod probes;
pub mod quality;
pub mod reach;
pub mod read;
pub mod recording;
pub mod report;
pub mod reread;
pub mod rules;
pub mod session;
pub mod settings;
pub mod signals;
pub mod tokens;
pub mod values;
pub mod watch;
