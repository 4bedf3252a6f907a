//! What the operator watches: every metric by its name and labels, the alert
//! rules and the dashboard in `docker/`, and a real Prometheus over a session.

mod contract;
mod deployed;
pub mod exposition;
mod health;
mod money;
pub mod played;
mod prometheus;
mod queries;
mod tools;
