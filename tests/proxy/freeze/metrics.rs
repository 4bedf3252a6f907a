//! The metrics: names, types, help, labels and buckets.

use std::collections::BTreeSet;

use super::pins;
use crate::watching::exposition::families;
use crate::watching::played::PAGE;

#[test]
fn metrics_are_called_what_they_were_called() {
    let mut text = String::from("# name type labels; help; buckets\n");
    for (name, family) in families(&PAGE) {
        let labels: Vec<&str> = family.labels().into_iter().collect();
        text.push_str(&format!(
            "{name} {} {{{}}}\n",
            family.kind,
            labels.join(", ")
        ));
        text.push_str(&format!("    {}\n", family.help));
        let buckets: BTreeSet<&str> = family.values("le");
        if !buckets.is_empty() {
            let buckets: Vec<&str> = buckets.into_iter().collect();
            text.push_str(&format!("    {}\n", buckets.join(" ")));
        }
    }
    pins::check("metrics.txt", &text);
}
