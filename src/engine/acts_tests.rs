//! What calls are taken for.

use super::*;
