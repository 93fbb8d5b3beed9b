//! Markdown as far as the tests of the docs need it: headings, fenced blocks, tables' text and links.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The checkout that the tests belong to.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout is there")
}

/// One Markdown file of the repository.
#[derive(Debug)]
pub struct Page {
    /// Relative to the root of the checkout.
    pub path: PathBuf,
    pub lines: Vec<String>,
    pub blocks: Vec<Block>,
    pub headings: Vec<Heading>,
    pub links: Vec<Link>,
}

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    pub language: String,
    pub text: String,
    /// Index of the line of its opening fence.
    pub line: usize,
}

#[derive(Debug)]
pub struct Heading {
    pub text: String,
    /// What a link to it says after `#`.
    pub anchor: String,
    pub line: usize,
}

/// A link or an image to somewhere in the repository.
#[derive(Debug)]
pub struct Link {
    pub target: String,
    pub line: usize,
}

impl Page {
    pub fn read(path: &Path) -> Page {
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut page = Page {
            path: path.to_owned(),
            blocks: Vec::new(),
            headings: Vec::new(),
            links: Vec::new(),
            lines: lines.clone(),
        };
        let mut anchors = BTreeMap::new();
        let mut open: Option<Block> = None;
        for (index, line) in lines.iter().enumerate() {
            match (line.strip_prefix("```"), open.take()) {
                (Some(_), Some(block)) => page.blocks.push(block),
                (None, Some(mut block)) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                    open = Some(block);
                }
                (Some(language), None) => {
                    open = Some(Block {
                        language: language.trim().to_owned(),
                        text: String::new(),
                        line: index,
                    });
                }
                (None, None) => page.prose(line, index, &mut anchors),
            }
        }
        assert!(open.is_none(), "{path:?}: a block that is not closed");
        page
    }

    fn prose(&mut self, line: &str, index: usize, anchors: &mut BTreeMap<String, usize>) {
        if line.starts_with('#') {
            let text = line.trim_start_matches('#').trim().to_owned();
            let mut anchor = anchor_of(&text);
            let seen = anchors.entry(anchor.clone()).or_insert(0);
            *seen += 1;
            if *seen > 1 {
                anchor = format!("{anchor}-{}", *seen - 1);
            }
            self.headings.push(Heading { text, anchor, line: index });
        }
        let line = without_code(line);
        let targets = (line.split("](").skip(1).filter_map(|rest| rest.split(')').next()))
            .chain(line.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()))
            .chain(line.split("srcset=\"").skip(1).filter_map(|rest| rest.split('"').next()));
        for target in targets {
            if !target.contains("://") && !target.starts_with("mailto:") {
                self.links.push(Link { target: target.to_owned(), line: index });
            }
        }
    }

    /// The lines under a heading, up to the next heading of any level.
    pub fn section(&self, heading: &Heading) -> &[String] {
        let end = self.headings.iter().map(|other| other.line).find(|&line| line > heading.line);
        &self.lines[heading.line + 1..end.unwrap_or(self.lines.len())]
    }

    /// The first block under a heading.
    pub fn first_block(&self, heading: &Heading) -> Option<&Block> {
        let end = heading.line + 1 + self.section(heading).len();
        self.blocks.iter().find(|block| block.line > heading.line && block.line < end)
    }
}

/// Every Markdown file of the repository, not what builds and tools leave in it.
pub fn pages() -> Vec<Page> {
    let mut found = Vec::new();
    collect(Path::new(""), &mut found);
    found.sort();
    found.iter().map(|path| Page::read(path)).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(folder)).expect("a folder of the checkout").flatten() {
        let name = entry.file_name().into_string().expect("names here are UTF-8");
        let path = folder.join(&name);
        if entry.path().is_dir() {
            if !name.starts_with('.') && !["target", "node_modules", "dist"].contains(&name.as_str()) {
                collect(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// As GitHub makes it: lower case, no punctuation, hyphens for blanks.
fn anchor_of(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            _ => character.is_alphanumeric().then_some(character),
        })
        .collect()
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}
