// SPDX-License-Identifier: GPL-2.0-only
//! Android, live: the activity manager tells an `IUidObserver` each change of an app's processes. Written by AOSP's
//! interfaces, tested against parcels by its layout, not tried on a phone. The agent needs the permission
//! PACKAGE_USAGE_STATS there, as the shell's user has, and tells the kernel itself: `--kernel`.

use crate::binder::{self, REGISTER};
use crate::binder_driver::{Device, Driver, Link};
use crate::event::Event;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use crate::uids::{app, Uids};
use fasttrack_bus::APPS_MOST;
use fasttrack_detector::report::{AppRef, Report, Sense};
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::Path;

const DEVICE: &str = "/dev/binder";
/// Only Android has it; other systems may have binder for containers of Android's.
const ANDROID: &str = "/system/bin/servicemanager";
/// This process's number of its only object.
const OBSERVER: u64 = 1;
/// The package that is said to ask; the shell's user has no other.
const PACKAGE: &str = "com.android.shell";

/// The activity manager's UIDs.
#[derive(Default)]
pub struct UidObserver;

impl Source for UidObserver {
    fn name(&self) -> &'static str {
        "uid-observer"
    }

    fn probe(&self) -> Probe {
        match Path::new(DEVICE).exists() && Path::new(ANDROID).exists() {
            true => Probe::Yes,
            false => Probe::No("this is not Android".into()),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        follow(Device::open(Path::new(DEVICE))?, out)
    }
}

/// Registers an observer, and says what it is told. At its end nobody can be noticed: a system server that comes again
/// does not say what has ended meanwhile.
pub fn follow(driver: impl Driver, out: &Out) -> Result<(), Fault> {
    let mut link = Link::new(driver);
    let asked = binder::get_service("activity");
    let answer = link.call(0, binder::GET_SERVICE, &asked, &[])?;
    let manager = binder::service(&answer)?;
    link.keep(manager);
    let (arguments, at) = binder::register(OBSERVER, PACKAGE);
    let answer = link.call(manager, REGISTER, &arguments, &[at as u64])?;
    binder::registered(&answer)?;
    link.listen();
    let mut heard = BTreeMap::new();
    let end = observe(&mut link, &mut heard, out);
    for app in heard.into_values() {
        out.perceptible(app, Sense::Audio, false)?;
    }
    end
}

/// Who can be noticed, as it was told: a group that has gone meanwhile has another path.
type Heard = BTreeMap<u32, AppRef>;

fn observe(link: &mut Link<impl Driver>, heard: &mut Heard, out: &Out) -> Result<(), Fault> {
    let mut uids = Uids::default();
    loop {
        let call = link.incoming()?;
        let before = uids.clone();
        let changed = match binder::parse(call.code, &call.parcel) {
            Ok(call) => uids.take(call),
            // One that is not understood is counted, and the next one may be.
            Err(Fault(why)) => {
                out.say(Event::Fault {
                    source: "uid-observer",
                    why,
                })?;
                false
            }
        };
        if changed {
            tell(&before, &uids, heard, out)?;
        }
    }
}

fn tell(before: &Uids, now: &Uids, heard: &mut Heard, out: &Out) -> Result<(), Fault> {
    let place = out.resolver().place();
    let noticed = now.noticed();
    let mut ended = heard.clone();
    ended.retain(|uid, _| !noticed.contains(uid));
    for (uid, app) in ended {
        heard.remove(&uid);
        out.perceptible(app, Sense::Audio, false)?;
    }
    for uid in noticed {
        if let Entry::Vacant(new) = heard.entry(uid) {
            let app = new.insert(app(place, uid));
            out.perceptible(app.clone(), Sense::Audio, true)?;
        }
    }
    let front = now.front();
    if front != before.front() {
        match front.is_empty() {
            true => out.nobody()?,
            false => {
                let apps = front.iter().take(APPS_MOST).map(|uid| app(place, *uid));
                out.focus(Report::Front(apps.collect()))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binder::tests::call;
    use crate::binder_driver::tests::Played;
    use crate::testing::FakePlace;
    use fasttrack_detector::report::Nobody;

    #[test]
    fn who_ends_is_named_as_when_it_began_though_its_group_is_gone() {
        let fake = FakePlace::new();
        let group = fake.group("/apps/uid_10160", 0);
        let (to, from) = std::sync::mpsc::sync_channel(8);
        let out = Out::new("uid-observer", fake.resolver(), to);
        let mut now = Uids::default();
        let mut heard = Heard::new();
        let heard_by = call(&[10_160, 4, 7, 0, 0]);
        now.take(binder::parse(4, &heard_by).expect("a call"));
        tell(&Uids::default(), &now, &mut heard, &out).expect("told");
        std::fs::remove_dir(fake.place().directory(&group.cgroup)).expect("a group");
        tell(&now, &Uids::default(), &mut heard, &out).expect("told");
        for expected in [true, false] {
            let Ok(Event::Sense { app, on, .. }) = from.try_recv() else {
                panic!("no sense");
            };
            assert_eq!(
                (&app.cgroup, app.inode, on),
                (&group.cgroup, group.inode, expected)
            );
        }
    }

    #[test]
    fn an_observer_is_registered_and_what_it_is_told_is_said() {
        let fake = FakePlace::new();
        let mail = fake.group("/uid_10123", 0);
        let played = Played::default();
        // The service's handle, then that the observer is registered.
        let mut answer = vec![0; 4];
        answer.extend(0x7368_2a85_u32.to_le_bytes());
        answer.extend([0; 4]);
        answer.extend(5_u64.to_le_bytes());
        answer.extend([0; 12]);
        played.reply(&answer);
        played.reply(&[0; 4]);
        for (uid, state) in [
            (10_123, 2),
            (99_001, 3),
            (10_160, 4),
            (10_123, 15),
            (99_001, 15),
        ] {
            played.call(4, &call(&[uid, state, 7, 0, 0]));
        }
        played.call(4, b"nonsense");
        played.death();
        let (to, from) = std::sync::mpsc::sync_channel(64);
        let out = Out::new("uid-observer", fake.resolver(), to);
        let end = follow(played.clone(), &out).expect_err("its end");
        assert!(end.0.contains("system server"), "{end}");
        drop(out);
        let told: Vec<String> = from
            .iter()
            .map(|event| match event {
                Event::Focus(Report::Front(apps)) => {
                    assert!(apps
                        .iter()
                        .all(|app| app.id != "10123" || app.inode == mail.inode));
                    let ids: Vec<String> = apps.into_iter().map(|app| app.id).collect();
                    ids.join(" ")
                }
                Event::Focus(Report::Nobody(Nobody::Unfocused)) => "nobody".into(),
                Event::Sense { app, on, .. } => format!("{} {on}", app.id),
                Event::Fault { .. } => "fault".into(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            told,
            [
                "10123",
                "10123 99001",
                "10160 true",
                "99001",
                "nobody",
                "fault",
                "10160 false"
            ]
        );
    }
}
