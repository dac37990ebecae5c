// SPDX-License-Identifier: GPL-2.0-only
//! The program's modules use each other one way: what two of them need is a third one below both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Uses = BTreeMap<String, BTreeSet<String>>;

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The modules that each module names as `crate::NAME`; tests do not count.
fn uses() -> Uses {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Uses::new();
    for entry in fs::read_dir(source).expect("the sources") {
        let path = entry.expect("a file").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let name = stem.expect("a name").to_string();
        if name == "main" || name.ends_with("_tests") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        let code = text.split("#[cfg(test)]\nmod tests").next();
        let named = code.unwrap_or_default().split("crate::").skip(1);
        let modules = named.map(|rest| first_word(rest).to_string());
        found.insert(name, modules.collect());
    }
    found
}

/// Everything that a module uses, also by way of others.
fn below(uses: &Uses, module: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![module];
    while let Some(name) = open.pop() {
        for next in uses.get(name).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    seen
}

#[test]
fn no_module_leans_on_itself() {
    let uses = uses();
    assert!(uses["init"].contains("run"), "{uses:?}");
    let circles: Vec<&String> = uses
        .keys()
        .filter(|name| below(&uses, name).contains(*name))
        .collect();
    assert!(circles.is_empty(), "in a circle of modules: {circles:?}");
}
