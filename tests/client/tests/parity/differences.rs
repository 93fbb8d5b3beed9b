//! The differences that are meant to be, and the judgement whether these and no others occur.

use std::collections::BTreeMap;

const LIST: &str = include_str!("differences.tsv");

/// What one statement came to on each side; no difference, as a rule.
#[derive(Debug)]
pub struct Difference {
    pub call: String,
    pub reference: String,
    pub created: String,
    pub adopted: String,
}

struct Listed {
    reference: &'static str,
    ours: &'static str,
    occurred: bool,
}

/// The list, ticked off as the script goes on.
pub struct Differences {
    listed: BTreeMap<&'static str, Listed>,
    complaints: Vec<String>,
}

impl Differences {
    pub fn listed() -> Differences {
        let mut listed = BTreeMap::new();
        for line in LIST.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<_> = line.split('\t').collect();
            let [call, reference, ours, rule, reason] = fields[..] else {
                panic!("not five fields: {line}");
            };
            assert!(!rule.is_empty() && !reason.is_empty(), "without a reason: {line}");
            let twice = listed.insert(call, Listed { reference, ours, occurred: false });
            assert!(twice.is_none(), "listed twice: {call}");
        }
        Differences { listed, complaints: Vec::new() }
    }

    pub fn count(&self) -> usize {
        self.listed.len()
    }

    /// Ticks a difference off, or complains of it.
    pub fn judge(&mut self, found: Difference) {
        let Difference { call, reference, created, adopted } = found;
        if created != adopted {
            self.complaints.push(format!("created and adopted differ\t{call}\n    {created}\n    {adopted}"));
        }
        for ours in [&created, &adopted] {
            if ours.starts_with("error XX") || ours.contains(".rs:") {
                self.complaints.push(format!("an error from inside\t{call}\n    {ours}"));
            }
        }
        match self.listed.get_mut(&*call) {
            Some(listed) if reference == created => {
                listed.occurred = true;
                self.complaints.push(format!("listed, but no difference any more\t{call}"));
            }
            Some(listed) => {
                listed.occurred = true;
                if (listed.reference, listed.ours) != (&*reference, &*created) {
                    self.complaints.push(format!("listed otherwise\n{call}\t{reference}\t{created}"));
                }
            }
            None if reference == created => {}
            None => self.complaints.push(format!("not listed\n{call}\t{reference}\t{created}")),
        }
    }

    /// Says all complaints at once. What is not listed is shown as the first fields of its line.
    pub fn assert_as_listed(mut self) {
        for (call, listed) in &self.listed {
            if !listed.occurred {
                self.complaints.push(format!("listed, but there is no such call\t{call}"));
            }
        }
        assert!(
            self.complaints.is_empty(),
            "{} complaints:\n{}",
            self.complaints.len(),
            self.complaints.join("\n")
        );
    }
}
