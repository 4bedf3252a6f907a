//! How much the journal may take, as things are written.
//!
//! What the journal holds is measured now and then; in between, what was written
//! since is estimated. So a write costs no measurement until a small share of
//! the limit was written, and the limit is exceeded by no more than that share
//! for each process that writes.

/// The share of the limit that is written between two measurements.
const SHARE: u64 = 16;
/// Content is packed: it takes about this part of its size.
const PACKED: u64 = 2;

/// What the journal holds, and what it may hold.
#[derive(Debug, Clone)]
pub struct Quota {
    limit: u64,
    /// What it held when it was last measured.
    measured: Option<u64>,
    /// What was written since then, about.
    written: u64,
    /// What is being written, about.
    reserved: u64,
}

/// Room that was taken for something that is being written.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Reserved(u64);

impl Quota {
    /// With this limit in bytes, of which nothing is known to be used.
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            measured: None,
            written: 0,
            reserved: 0,
        }
    }

    /// Takes room for content of this size, if it is known that there is room.
    /// Otherwise the journal is to be measured first.
    pub fn reserve(&mut self, content: u64) -> Option<Reserved> {
        let size = content / PACKED;
        let taken = self.written.saturating_add(self.reserved);
        let held = self.measured?.saturating_add(taken).saturating_add(size);
        let is_due = self.written > self.limit / SHARE;
        if is_due || held > self.limit {
            return None;
        }
        self.reserved = self.reserved.saturating_add(size);
        Some(Reserved(size))
    }

    /// Something was written, or was not after all.
    pub fn finish(&mut self, Reserved(size): Reserved) {
        self.reserved = self.reserved.saturating_sub(size);
        self.written = self.written.saturating_add(size);
    }

    /// What was written since the last measurement: to be asked before the next.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The journal was measured, when this much had been written.
    pub fn measure(&mut self, bytes: u64, written: u64) {
        self.measured = Some(bytes);
        self.written = self.written.saturating_sub(written);
    }

    /// What the journal may hold after room was made in it, so that room need
    /// not be made again at once.
    pub fn target(&self, content: u64) -> u64 {
        let spare = (self.limit / SHARE * 2).max(content / PACKED);
        self.limit.saturating_sub(spare)
    }

    /// The limit.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes content of this size, if there is room.
    fn write(quota: &mut Quota, content: u64) -> bool {
        let reserved = quota.reserve(content);
        reserved.map(|reserved| quota.finish(reserved)).is_some()
    }

    #[test]
    fn nothing_is_written_before_the_first_measurement() {
        let mut quota = Quota::new(1_600);
        assert!(!write(&mut quota, 10));
        quota.measure(0, 0);
        assert!(write(&mut quota, 10));
    }

    #[test]
    fn a_share_of_the_limit_is_written_between_two_measurements() {
        let mut quota = Quota::new(1_600);
        quota.measure(0, 0);
        let written = (0..100).take_while(|_| write(&mut quota, 20)).count();
        assert_eq!(written, 11, "100 bytes are a sixteenth");
        quota.measure(110, quota.written());
        assert!(write(&mut quota, 20));
    }

    #[test]
    fn what_would_exceed_the_limit_is_not_written() {
        let mut quota = Quota::new(1_600);
        quota.measure(1_590, 0);
        assert!(write(&mut quota, 20));
        assert!(!write(&mut quota, 20));
        quota.measure(1_600, quota.written());
        assert!(!write(&mut quota, 2));
        // One large piece may be more than the share, if it fits.
        let mut quota = Quota::new(1_600);
        quota.measure(0, 0);
        assert!(!write(&mut quota, 3_202));
        assert!(write(&mut quota, 3_200));
    }

    #[test]
    fn what_is_being_written_counts_though_no_measurement_shows_it() {
        let mut quota = Quota::new(1_600);
        quota.measure(0, 0);
        let flying: Vec<Reserved> = (0..20).map_while(|_| quota.reserve(200)).collect();
        assert_eq!(flying.len(), 16);
        quota.measure(0, quota.written());
        assert!(!write(&mut quota, 200));
        for reserved in flying {
            quota.finish(reserved);
        }
        quota.measure(800, quota.written());
        assert!(write(&mut quota, 200));
    }

    #[test]
    fn making_room_makes_enough_for_what_is_to_be_written() {
        let quota = Quota::new(1_600);
        assert_eq!(quota.target(10), 1_400);
        assert_eq!(quota.target(1_000), 1_100);
        assert_eq!(quota.target(9_999), 0);
    }
}
