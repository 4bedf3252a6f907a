//! What facts are taken, and the laws.
