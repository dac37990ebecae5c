// SPDX-License-Identifier: GPL-2.0-only
use super::*;
use crate::testing::mutate;

/// Recorded from sway 1.7: two Wayland clients and one of X11, switches, a floating window, another workspace, ends.
/// Most fields that are not read are left out, here and below.
const STREAM: &[u8] = include_bytes!("../tests/streams/sway.bin");
const TREE: &[u8] = include_bytes!("../tests/streams/sway-tree.json");
const TREE_PARENT: &[u8] = include_bytes!("../tests/streams/sway-tree-parent.json");
const TREE_EMPTY: &[u8] = include_bytes!("../tests/streams/sway-tree-empty.json");
/// Recorded from i3 4.22.
const I3_STREAM: &[u8] = include_bytes!("../tests/streams/i3.bin");
const I3_TREE: &[u8] = include_bytes!("../tests/streams/i3-tree.json");

fn steps(mut stream: &[u8]) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Ok((kind, text)) = read(&mut stream) {
        steps.push(event(kind, &text).expect("a recorded event"));
    }
    steps
}

fn fronts(steps: &[Step]) -> Vec<&str> {
    steps
        .iter()
        .filter_map(|step| match step {
            Step::Front(found) => Some(found.window.id.as_str()),
            Step::Nobody => Some("nobody"),
            _ => None,
        })
        .collect()
}

#[test]
fn sways_events_name_the_app_and_its_pid() {
    let steps = steps(STREAM);
    let expected = [
        "one", "two", "XTerm", "one", "XTerm", "two", "nobody", "two", "XTerm",
    ];
    assert_eq!(fronts(&steps), expected);
    assert!(steps
        .iter()
        .all(|step| !matches!(step, Step::Front(found) if found.window.pid == 0)));
    let opened = steps.iter().filter(|step| matches!(step, Step::Opened(_)));
    assert_eq!(opened.count(), 3);
    assert_eq!(steps.last(), Some(&Step::Ask));
}

#[test]
fn i3s_events_name_the_x11_window() {
    let steps = steps(I3_STREAM);
    assert!(fronts(&steps).len() >= 4);
    assert!(steps
        .iter()
        .all(|step| !matches!(step, Step::Front(found) if found.x11 == 0)));
    assert!(focused(I3_TREE)
        .expect("a tree")
        .is_some_and(|found| found.x11 > 0));
}

#[test]
fn the_tree_says_who_has_the_focus() {
    let id = |tree| focused(tree).expect("a tree").map(|found| found.window.id);
    assert_eq!(id(TREE).as_deref(), Some("two"));
    // A container has it: its window, of X11 here, has no app_id.
    assert_eq!(id(TREE_PARENT).as_deref(), Some("XTerm"));
    assert_eq!(id(TREE_EMPTY), None);
}

#[test]
fn the_tree_has_titles() {
    let all = titles(TREE).expect("a tree");
    let one = |title: &str, id: &str| {
        let found = |(its, found): &(String, Found)| its == title && found.window.id == id;
        all.iter().any(found)
    };
    assert!(one("foot", "two") && one("sleep", "XTerm"), "{all:?}");
    assert!(all.iter().all(|(title, _)| title != "root"));
}

#[test]
fn half_a_message_and_a_bad_head_are_faults() {
    let half = &STREAM[..STREAM.len() - 1];
    let mut at = half;
    let fault = loop {
        if let Err(fault) = read(&mut at) {
            break fault;
        }
    };
    assert!(fault.0.contains("middle"));
    let mut long = b"i3-ipc\xff\xff\xff\xff\x04\0\0\0".to_vec();
    long.extend(vec![b' '; 64]);
    assert!(read(&mut &long[..]).is_err());
    assert!(event(EVENT_WINDOW, b"{\"change\":7}").is_err());
}

#[test]
fn spoilt_streams_do_no_harm() {
    for stream in [STREAM, I3_STREAM] {
        mutate(stream, |mut bytes| {
            while let Ok((kind, text)) = read(&mut bytes) {
                if event(kind, &text).is_err() {
                    break;
                }
            }
        });
    }
    for tree in [TREE, TREE_PARENT, TREE_EMPTY, I3_TREE] {
        mutate(tree, |bytes| drop(focused(bytes)));
    }
}
