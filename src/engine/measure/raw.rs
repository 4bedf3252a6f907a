//! A raw count: what the public vocabulary and the rules say, before any factor.
//!
//! Three sums, because they become tokens in different ways. Text is scaled by
//! the model's factor. Pictures, pages and frames are not text, and no tokenizer
//! changes them. Thinking is text, but some requests do not show it to the
//! model, so it can be left out.

use std::ops::{Add, AddAssign};

/// A raw count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Raw {
    /// Text by the public vocabulary.
    pub text: u64,
    /// Thinking, shown or hidden, by the public vocabulary.
    pub thinking: u64,
    /// Tokens by rule: pictures, pages, frames.
    pub fixed: u64,
}

impl Raw {
    /// That many tokens by rule.
    pub const fn fixed(tokens: u64) -> Self {
        Self {
            text: 0,
            thinking: 0,
            fixed: tokens,
        }
    }

    /// The same without thinking, for a model that is not shown it.
    #[must_use]
    pub fn without_thinking(self) -> Self {
        Self {
            thinking: 0,
            ..self
        }
    }

    /// What a factor scales.
    pub fn scaled(self) -> u64 {
        self.text.saturating_add(self.thinking)
    }

    /// Everything, with a factor of one.
    pub fn total(self) -> u64 {
        self.scaled().saturating_add(self.fixed)
    }
}

impl Add for Raw {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            text: self.text.saturating_add(other.text),
            thinking: self.thinking.saturating_add(other.thinking),
            fixed: self.fixed.saturating_add(other.fixed),
        }
    }
}

impl AddAssign for Raw {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Raw {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}
