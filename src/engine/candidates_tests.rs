//! What may go, and what may not.

use super::*;
