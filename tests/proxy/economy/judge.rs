//! What the figures must say for the policy to be right.

use super::compare::Case;
use super::figures::Figures;

/// Percent of what nothing at all costs, on every session.
const MOST: u64 = 102;
/// Percent of the sessions past a watermark in which nothing is cheaper.
const WINS: usize = 90;

/// Whether the proxy is cheaper than everything else, where it had a reason to be.
pub fn wins(case: &Case) -> bool {
    let dearer = |other: &Figures| case.longhaul.micro_dollars < other.micro_dollars;
    case.beyond > 0 && dearer(&case.none) && case.rivals.iter().all(dearer)
}

/// What must never happen on any session.
pub fn harm(cases: &[Case]) -> Vec<String> {
    let mut found = Vec::new();
    for case in cases {
        let (none, longhaul) = (&case.none, &case.longhaul);
        let mut say =
            |what: String| found.push(format!("{}, {}: {what}", case.session, case.setting));
        if longhaul.micro_dollars * 100 > none.micro_dollars * MOST {
            let (with, without) = (longhaul.micro_dollars, none.micro_dollars);
            say(format!("costs {with} micro-dollars, {without} without"));
        }
        if longhaul.stray_breaks > 0 {
            say(format!(
                "{} breaks of the prefix without a pass",
                longhaul.stray_breaks
            ));
        }
        if longhaul.breaks > longhaul.passes + none.breaks {
            say(format!(
                "{} breaks of the prefix for {} passes",
                longhaul.breaks, longhaul.passes
            ));
        }
        if longhaul.refusals > 0 {
            say(format!("upstream refused {} requests", longhaul.refusals));
        }
    }
    found
}

/// Whether the proxy is cheapest often enough, over the sessions of a setting.
pub fn worth(cases: &[Case]) -> Option<String> {
    let setting = &cases.first()?.setting;
    let beyond = cases.iter().filter(|case| case.beyond > 0).count();
    let won = cases.iter().filter(|case| wins(case)).count();
    let enough = beyond > 0 && won * 100 >= beyond * WINS;
    (!enough)
        .then(|| format!("{setting}: cheapest in {won} of {beyond} sessions past the watermark"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(micro_dollars: u64) -> Figures {
        Figures {
            micro_dollars,
            ..Figures::default()
        }
    }

    fn case(longhaul: u64) -> Case {
        Case {
            session: "s".to_owned(),
            setting: "m".to_owned(),
            beyond: 1,
            none: figures(1_000),
            rivals: vec![figures(1_200), figures(900)],
            batch: Some(figures(100)),
            longhaul: figures(longhaul),
        }
    }

    #[test]
    fn two_percent_more_than_nothing_is_allowed() {
        assert_eq!(harm(&[case(1_020)]), Vec::<String>::new());
        assert_eq!(harm(&[case(800), case(1_021)]).len(), 1);
    }

    #[test]
    fn a_break_needs_a_pass_and_a_pass_breaks_once() {
        let with = |breaks, stray_breaks, passes, none_breaks| {
            let mut case = case(800);
            case.none.breaks = none_breaks;
            case.longhaul = Figures {
                breaks,
                stray_breaks,
                passes,
                ..case.longhaul
            };
            harm(&[case]).len()
        };
        assert_eq!(with(0, 0, 2, 0), 0);
        assert_eq!(with(2, 0, 2, 0), 0);
        assert_eq!(with(2, 1, 2, 0), 1);
        assert_eq!(with(3, 0, 2, 0), 1);
        assert_eq!(with(3, 0, 2, 1), 0);
    }

    #[test]
    fn a_refusal_is_harm() {
        let mut case = case(800);
        case.longhaul.refusals = 1;
        assert_eq!(harm(&[case]).len(), 1);
    }

    #[test]
    fn nine_of_ten_must_be_won_against_everyone() {
        let among = |won: usize, lost: usize| {
            let mut cases = vec![case(899); won];
            cases.extend(vec![case(900); lost]);
            worth(&cases).is_none()
        };
        assert!(among(9, 1));
        assert!(among(1, 0));
        assert!(!among(8, 1));
        assert!(!among(0, 1));
    }

    #[test]
    fn sessions_that_stay_small_do_not_count() {
        let mut small = case(1_000);
        small.beyond = 0;
        assert!(worth(&[case(899), small.clone()]).is_none());
        assert!(worth(&[small]).is_some(), "nothing was compared");
        assert!(worth(&[]).is_none());
    }
}
