//! The simulated upstream.
