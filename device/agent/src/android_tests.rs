// SPDX-License-Identifier: GPL-2.0-only
use super::*;
use crate::testing::mutate;

/// Written by the documented tags (`EventLogTags.logtags`), not recorded.
const LOG: &str = include_str!("../tests/streams/android-events.txt");

fn groups(replay: &Replay) -> Vec<String> {
    replay.front().into_iter().map(|app| app.cgroup).collect()
}

#[test]
fn the_front_is_followed_through_split_screen_users_and_shared_uids() {
    let mut replay = Replay::default();
    let mut fronts: Vec<Vec<String>> = Vec::new();
    for line in LOG.lines() {
        if replay.take(&parse(line)) == Some(Step::Front) && fronts.last() != Some(&groups(&replay))
        {
            fronts.push(groups(&replay));
        }
    }
    let expected = [
        vec!["/uid_10123"],
        vec!["/uid_10123", "/uid_99001"],
        // Of the second user, beside it on the split screen: the order is that of the tokens.
        vec!["/uid_1010200", "/uid_10123", "/uid_99001"],
        vec!["/uid_1010200"],
        // Two packages of one UID are one app.
        vec!["/uid_10150", "/uid_1010200"],
        vec!["/uid_10150"],
    ];
    assert_eq!(fronts, expected);
}

#[test]
fn a_sandbox_is_in_front_with_its_app() {
    let mut replay = Replay::default();
    for line in [
        "am_proc_start: [0,1,10123,com.example.mail,activity,x]",
        "am_proc_start: [0,2,20123,com.android.sdksandbox:com.example.mail,,x]",
        "am_proc_start: [0,3,20124,com.android.sdksandbox:com.example.other,,x]",
        "wm_resume_activity: [0,7,1,com.example.mail/.Main]",
    ] {
        replay.take(&parse(line));
    }
    assert_eq!(groups(&replay), ["/uid_10123", "/uid_20123"]);
    replay.take(&parse(
        "am_proc_died: [0,2,com.android.sdksandbox:com.example.mail,900,19]",
    ));
    assert_eq!(groups(&replay), ["/uid_10123"]);
}

#[test]
fn control_groups_that_are_there_have_their_inodes() {
    let fake = crate::testing::FakePlace::new();
    let mail = fake.group("/uid_10123", 0);
    let (to, from) = std::sync::mpsc::sync_channel(256);
    let out = Out::new("android-replay", fake.resolver(), to);
    follow(&mut LOG.as_bytes(), &out).expect("its end");
    drop(out);
    let inodes: BTreeSet<u64> = from
        .iter()
        .filter_map(|event| match event {
            crate::event::Event::Focus(Report::Front(apps)) => Some(apps),
            crate::event::Event::Other(Report::Launch(app)) => Some(vec![app]),
            _ => None,
        })
        .flatten()
        .filter(|app| app.cgroup == "/uid_10123")
        .map(|app| app.inode)
        .collect();
    assert_eq!(inodes, BTreeSet::from([mail.inode]));
}

#[test]
fn a_launch_precedes_its_window() {
    let mut replay = Replay::default();
    let told: Vec<Report> = LOG
        .lines()
        .filter_map(|line| match replay.take(&parse(line)) {
            Some(Step::Tell(report)) => Some(report),
            _ => None,
        })
        .collect();
    let launch = app(10_123, "com.example.mail", 4321);
    let window = app(10_123, "com.example.mail", 0);
    assert_eq!(told[..2], [Report::Launch(launch), Report::Window(window)]);
}

#[test]
fn screen_and_keyguard_leave_nobody() {
    let mut replay = Replay::default();
    let away = |line| matches!(line, Some(Step::Away(_)));
    let steps = LOG.lines().map(|line| replay.take(&parse(line)));
    let steps: Vec<_> = steps.filter(|step| away(step.clone())).flatten().collect();
    assert_eq!(steps, [true, false, true, false].map(Step::Away));
}

#[test]
fn uids_have_kinds_in_each_user() {
    assert_eq!(kind(10_000), Kind::App);
    assert_eq!(kind(1_019_999), Kind::App);
    assert_eq!(kind(1_099_001), Kind::Isolated);
    assert_eq!(kind(1000), Kind::System);
    assert_eq!(app_uid(1_020_123), Some(1_010_123));
    assert_eq!(app_uid(99_001), None);
}

#[test]
fn older_names_and_formats_are_understood() {
    let brief = "I/am_resume_activity( 1234): [0,77,12,com.example.mail/.Main]";
    assert_eq!(parse(brief), Line::Resume(0, "77", "com.example.mail"));
    assert_eq!(parse("am_proc_start: [0,x]"), Line::Nothing);
    assert_eq!(parse(""), Line::Nothing);
}

#[test]
fn spoilt_logs_do_no_harm() {
    mutate(LOG.as_bytes(), |bytes| {
        let mut replay = Replay::default();
        let text = String::from_utf8_lossy(bytes);
        for line in text.lines() {
            replay.take(&parse(line));
        }
        replay.front();
    });
    mutate(b"am_kill: [0,1]", |bytes| {
        let _ = parse(&String::from_utf8_lossy(bytes));
    });
}
