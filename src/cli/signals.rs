//! Signals that were ignored before this process began.
//!
//! `nohup` and shells that start something in the background make a process deaf
//! to some signals. Listening for such a signal would undo that, so it is asked
//! first.

/// Whether a signal is ignored by this process, where the system tells.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_in_mask(&status, signal)
}

fn is_in_mask(status: &str, signal: i32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let bit = u32::try_from(signal - 1)
        .ok()
        .and_then(|at| 1_u64.checked_shl(at));
    mask.zip(bit).is_some_and(|(mask, bit)| mask & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_has_a_bit_for_each_signal() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        for (signal, ignored) in [(1, true), (2, false), (13, true), (15, false), (0, false)] {
            assert_eq!(is_in_mask(status, signal), ignored, "{signal}");
        }
        assert!(!is_in_mask("", 1) && !is_in_mask("SigIgn:\tnonsense", 1));
    }
}
