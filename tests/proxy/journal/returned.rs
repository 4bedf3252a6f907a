//! What the journal gives back, compared with what was there.

use std::collections::BTreeMap;

use longhaul::engine::ids::Reference;
use longhaul::recall::{Recall, Who};
use longhaul::wire::body::Body;
use serde_json::Value;

use super::player::{Pass, Player};
use super::promised::{What, expected};

/// All pages of what a reference stands for, without our lines around them, and
/// the first of these.
pub async fn pages(recall: &Recall, reference: Reference) -> Result<(String, String), String> {
    let (mut whole, mut heading) = (String::new(), String::new());
    for number in 1.. {
        let page = recall.expand(Who::Reference(reference), number).await;
        let page = page.map_err(|trouble| trouble.to_string())?.text;
        let (head, rest) = page.split_once('\n').unwrap_or((&page, ""));
        if number == 1 {
            head.clone_into(&mut heading);
        }
        let of = head.rsplit_once(&format!(", page {number} of "));
        let count = of.and_then(|(_, count)| count.strip_suffix(']')?.parse().ok());
        let Some(count): Option<u32> = count else {
            return Err(format!("no page: {head}"));
        };
        let end = format!("[longhaul: page {number} of {count} ends here; page ");
        let cut = rest.rfind(&end).filter(|_| number < count);
        whole.push_str(&rest[..cut.unwrap_or(rest.len())]);
        if number == count {
            break;
        }
    }
    Ok((whole, heading))
}

/// A text without the ends of its lines: a page ends with one of ours where it
/// has none.
fn joined(text: &str) -> String {
    text.replace('\n', "")
}

/// What is wrong with what comes back for a reference; none: nothing is.
pub async fn wrong(
    recall: &Recall,
    reference: Reference,
    what: &What,
    history: &[Value],
) -> Option<String> {
    let wanted = expected(what, history);
    let (whole, heading) = match pages(recall, reference).await {
        Ok(told) => told,
        Err(trouble) => return Some(trouble),
    };
    let told = joined(&whole);
    if let What::Messages(from, to) = what {
        if !heading.contains(&format!(" messages {from} to {to}, ")) {
            return Some(format!("not messages {from} to {to}: {heading}"));
        }
        let mut rest = told.as_str();
        for text in &wanted {
            let text = joined(text.trim_end());
            let Some(at) = rest.find(&text) else {
                let start: String = text.chars().take(200).collect();
                return Some(format!("not told: {start}"));
            };
            rest = &rest[at + text.len()..];
        }
        return None;
    }
    let wanted = joined(&wanted.concat());
    // What a call was given is told under the name of its tool.
    let same = match what {
        What::Input(_) => told.ends_with(&wanted),
        _ => told == wanted,
    };
    let chars = |text: &str| text.chars().count();
    (!same).then(|| format!("{} characters of {}", chars(&told), chars(&wanted)))
}

/// What is wrong with the export of a session as of a pass.
pub async fn export_wrong(recall: &Recall, pass: &Pass) -> Option<String> {
    let count = u32::try_from(pass.messages.len()).unwrap();
    let exported = match recall.export(pass.session, Some(count)).await {
        Ok(exported) => exported,
        Err(trouble) => return Some(trouble.to_string()),
    };
    let sent = format!("[{}]", pass.messages.join(","));
    if exported.json == sent.as_bytes() {
        return None;
    }
    let bytes = [&b"{\"messages\":"[..], &exported.json, b"}"].concat();
    let body = Body::split(&bytes).unwrap();
    let told: Vec<&[u8]> = body
        .messages()
        .iter()
        .map(|message| message.span.of(&bytes))
        .collect();
    let other = |(at, sent): (usize, &String)| {
        let told = told.get(at).copied().unwrap_or_default();
        (told != sent.as_bytes()).then(|| {
            let told: String = String::from_utf8_lossy(told).chars().take(300).collect();
            let sent: String = sent.chars().take(300).collect();
            format!("message {at}: {told} instead of {sent}")
        })
    };
    let first = pass.messages.iter().enumerate().find_map(other);
    let why = first.unwrap_or_default();
    Some(format!("{} of {count} messages: {why}", told.len()))
}

/// What a session has promised, and what was wrong with it.
#[derive(Default)]
pub struct Books {
    /// Each reference with what it stands for, and how much of the history there
    /// was then.
    pub promised: BTreeMap<[u8; 10], (What, usize)>,
    pub wrong: Vec<String>,
    pub exports: usize,
}

impl Books {
    /// Notes what a view promises that none before it has.
    pub fn note(&mut self, view: &[Value], branch: usize) {
        for (reference, what) in super::promised::promises(view) {
            let Some(what) = what else {
                self.wrong.push(format!("{reference} stands for nothing"));
                continue;
            };
            let known = self.promised.get(reference.as_bytes());
            match known {
                Some((before, _)) if *before != what => self
                    .wrong
                    .push(format!("{reference} stands for {before:?} and {what:?}")),
                Some(_) => {}
                None => {
                    self.promised.insert(*reference.as_bytes(), (what, branch));
                }
            }
        }
    }

    /// Asks everything back: what was promised, of the history of each branch,
    /// and the history as of every pass.
    pub fn settle(&mut self, player: &Player, branches: &[Vec<Value>]) {
        let recall = player.recall();
        player.runtime.block_on(async {
            for (name, (what, branch)) in &self.promised {
                let reference = Reference::from_bytes(*name);
                if let Some(why) = wrong(&recall, reference, what, &branches[*branch]).await {
                    self.wrong.push(format!("{what:?}, {reference}: {why}"));
                }
            }
            for pass in &player.passes {
                self.exports += 1;
                if let Some(why) = export_wrong(&recall, pass).await {
                    let (kinds, session) = (&pass.kinds, pass.session);
                    self.wrong.push(format!("{kinds} of {session}: {why}"));
                }
            }
        });
    }
}
