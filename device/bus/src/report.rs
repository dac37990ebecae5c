// SPDX-License-Identifier: GPL-2.0-only
//! A report on the wire. What comes from there is not believed: its sizes and words are checked here.

use fasttrack_detector::report::{AppRef, Nobody, Report, Sense};
use serde::{Deserialize, Serialize};
use std::fmt;
use zbus::zvariant::Type;

/// Apps in one report at most. A screen is shared by two or three.
pub const APPS_MOST: usize = 16;

/// Bytes of a control group's path at most: with its sign and a line's end it must fit into a page.
pub const PATH_BYTES_MOST: usize = 2048;

/// Bytes of an application id, or of a detail, at most. File names are not longer.
pub const ID_BYTES_MOST: usize = 255;

/// Sources of an agent at most: it has fewer.
pub const SOURCES_MOST: usize = 32;

/// Bytes of a source's name at most.
pub const SOURCE_BYTES_MOST: usize = 32;

/// Bytes of what a trouble means at most: a line or two.
pub const MEANING_BYTES_MOST: usize = 300;

/// An app on the wire: `(stsu)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct WireApp {
    /// Path of its control group below the root of the hierarchy.
    pub cgroup: String,
    /// Inode of that directory.
    pub inode: u64,
    /// Application id, or empty.
    pub id: String,
    /// Process that owns the window, or zero.
    pub pid: u32,
}

/// A report on the wire: `(sa(stsu)sb)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct WireReport {
    /// What kind of report this is.
    pub kind: String,
    /// The apps that it is about.
    pub apps: Vec<WireApp>,
    /// The reason, the compositor, or the sense.
    pub detail: String,
    /// Whether being perceptible begins.
    pub on: bool,
}

/// What went wrong with a source of an agent, on the wire: `(sstt)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct WireTrouble {
    /// The source's name.
    pub source: String,
    /// What the last trouble means.
    pub meaning: String,
    /// How often it has failed and was begun again.
    pub faults: u64,
    /// How often it could not tell whose a window is.
    pub unknown: u64,
}

impl WireTrouble {
    /// Refuses what is too long or has a character that it cannot have.
    pub fn check(&self) -> Result<(), Malformed> {
        check_text("source", &self.source, SOURCE_BYTES_MOST)?;
        check_text("meaning", &self.meaning, MEANING_BYTES_MOST)
    }

    /// A text that is no longer than a meaning may be, without characters that it cannot have.
    pub fn fitting(text: &str) -> String {
        let mut fits: String = text.chars().filter(|one| !one.is_control()).collect();
        let mut end = fits.len().min(MEANING_BYTES_MOST);
        while !fits.is_char_boundary(end) {
            end -= 1;
        }
        fits.truncate(end);
        fits
    }
}

/// Refuses names of sources that are too many, too long, or have a character that they cannot have.
pub fn check_sources(names: &[String]) -> Result<(), Malformed> {
    if names.len() > SOURCES_MOST {
        return Err(Malformed::Text("list of sources"));
    }
    names
        .iter()
        .try_for_each(|name| check_text("source", name, SOURCE_BYTES_MOST))
}

/// Why a report cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Malformed {
    /// There is no such kind of report.
    Kind(String),
    /// There is no such reason or sense.
    Detail(String),
    /// Too many or too few apps for its kind.
    Apps(usize),
    /// A path, an id or a detail is too long or has a character that it cannot have.
    Text(&'static str),
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Kind(kind) => write!(out, "no kind of report is called {kind:?}"),
            Malformed::Detail(detail) => write!(out, "{detail:?} is neither a reason nor a sense"),
            Malformed::Apps(number) => {
                write!(out, "a report of this kind cannot be about {number} apps")
            }
            Malformed::Text(what) => {
                write!(out, "the {what} is too long or has a control character")
            }
        }
    }
}

impl std::error::Error for Malformed {}

impl From<&AppRef> for WireApp {
    fn from(app: &AppRef) -> WireApp {
        WireApp {
            cgroup: app.cgroup.clone(),
            inode: app.inode,
            id: app.id.clone(),
            pid: app.pid,
        }
    }
}

impl From<&Report> for WireReport {
    fn from(report: &Report) -> WireReport {
        let (kind, apps, detail, on): (_, &[AppRef], &str, bool) = match report {
            Report::Front(apps) => ("front", apps, "", false),
            Report::Nobody(why) => ("nobody", &[], why.word(), false),
            Report::Ambiguous(apps) => ("ambiguous", apps, "", false),
            Report::CannotTell(who) => ("cannot-tell", &[], who, false),
            Report::Launch(app) => ("launch", std::slice::from_ref(app), "", false),
            Report::Window(app) => ("window", std::slice::from_ref(app), "", false),
            Report::Perceptible { app, sense, on } => {
                ("perceptible", std::slice::from_ref(app), sense.word(), *on)
            }
        };
        WireReport {
            kind: kind.to_string(),
            apps: apps.iter().map(WireApp::from).collect(),
            detail: detail.to_string(),
            on,
        }
    }
}

impl TryFrom<WireReport> for Report {
    type Error = Malformed;

    fn try_from(wire: WireReport) -> Result<Report, Malformed> {
        let number = wire.apps.len();
        check_text("detail", &wire.detail, ID_BYTES_MOST)?;
        let apps = wire
            .apps
            .into_iter()
            .map(app)
            .collect::<Result<Vec<_>, _>>()?;
        let one =
            |apps: Vec<AppRef>| <[AppRef; 1]>::try_from(apps).map_err(|_| Malformed::Apps(number));
        let fits = match wire.kind.as_str() {
            "front" => (1..=APPS_MOST).contains(&number),
            "ambiguous" => number <= APPS_MOST,
            "nobody" | "cannot-tell" => number == 0,
            _ => true,
        };
        if !fits {
            return Err(Malformed::Apps(number));
        }
        Ok(match wire.kind.as_str() {
            "front" => Report::Front(apps),
            "ambiguous" => Report::Ambiguous(apps),
            "nobody" => Report::Nobody(reason(&wire.detail)?),
            "cannot-tell" => Report::CannotTell(wire.detail),
            "launch" => one(apps).map(|[app]| Report::Launch(app))?,
            "window" => one(apps).map(|[app]| Report::Window(app))?,
            "perceptible" => {
                let [app] = one(apps)?;
                let sense = sense(&wire.detail)?;
                Report::Perceptible {
                    app,
                    sense,
                    on: wire.on,
                }
            }
            _ => return Err(Malformed::Kind(wire.kind.chars().take(32).collect())),
        })
    }
}

fn reason(word: &str) -> Result<Nobody, Malformed> {
    let found = Nobody::ALL.into_iter().find(|why| why.word() == word);
    found.ok_or_else(|| Malformed::Detail(word.to_string()))
}

fn sense(word: &str) -> Result<Sense, Malformed> {
    let found = Sense::ALL.into_iter().find(|sense| sense.word() == word);
    found.ok_or_else(|| Malformed::Detail(word.to_string()))
}

fn app(wire: WireApp) -> Result<AppRef, Malformed> {
    check_text("control group's path", &wire.cgroup, PATH_BYTES_MOST)?;
    check_text("application id", &wire.id, ID_BYTES_MOST)?;
    Ok(AppRef {
        cgroup: wire.cgroup,
        inode: wire.inode,
        id: wire.id,
        pid: wire.pid,
    })
}

fn check_text(what: &'static str, text: &str, most: usize) -> Result<(), Malformed> {
    if text.len() > most || text.chars().any(char::is_control) {
        return Err(Malformed::Text(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn an_app() -> AppRef {
        AppRef {
            cgroup: "/user.slice/user-1000.slice/a.scope".to_string(),
            inode: 7,
            id: "org.example.App".to_string(),
            pid: 42,
        }
    }

    fn all_kinds() -> Vec<Report> {
        let mut all = vec![
            Report::Front(vec![an_app(), an_app()]),
            Report::Ambiguous(vec![an_app()]),
            Report::CannotTell("weston".to_string()),
            Report::Launch(an_app()),
            Report::Window(an_app()),
        ];
        all.extend(Nobody::ALL.map(Report::Nobody));
        all.extend(Sense::ALL.map(|sense| Report::Perceptible {
            app: an_app(),
            sense,
            on: true,
        }));
        all
    }

    #[test]
    fn every_kind_survives_the_wire() {
        for report in all_kinds() {
            assert_eq!(Report::try_from(WireReport::from(&report)), Ok(report));
        }
    }

    #[test]
    fn the_signature_is_as_documented() {
        assert_eq!(WireReport::SIGNATURE.to_string(), "(sa(stsu)sb)");
    }

    #[test]
    fn a_trouble_is_cut_to_what_is_taken() {
        let trouble = |meaning: String| WireTrouble {
            source: "sway".to_string(),
            meaning,
            faults: 1,
            unknown: 0,
        };
        assert_eq!(WireTrouble::SIGNATURE.to_string(), "(sstt)");
        let long = format!("a\nb{}", "\u{e9}".repeat(MEANING_BYTES_MOST));
        assert!(trouble(long.clone()).check().is_err());
        let cut = WireTrouble::fitting(&long);
        assert!(cut.starts_with("ab\u{e9}") && cut.len() > MEANING_BYTES_MOST - 2);
        assert_eq!(trouble(cut).check(), Ok(()));
    }

    #[test]
    fn names_of_sources_are_few_and_short() {
        let names = |number: usize, bytes: usize| vec!["x".repeat(bytes); number];
        assert_eq!(
            check_sources(&names(SOURCES_MOST, SOURCE_BYTES_MOST)),
            Ok(())
        );
        assert!(check_sources(&names(SOURCES_MOST + 1, 1)).is_err());
        assert!(check_sources(&names(1, SOURCE_BYTES_MOST + 1)).is_err());
        assert!(check_sources(&["a\n".to_string()]).is_err());
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let good = WireReport::from(&Report::Launch(an_app()));
        let changed = |change: &dyn Fn(&mut WireReport)| {
            let mut wire = good.clone();
            change(&mut wire);
            Report::try_from(wire).expect_err("refused")
        };
        assert_eq!(changed(&|wire| wire.apps.clear()), Malformed::Apps(0));
        assert_eq!(
            changed(&|wire| wire.kind = "x".into()),
            Malformed::Kind("x".into())
        );
        assert_eq!(
            changed(&|wire| wire.kind = "nobody".into()),
            Malformed::Apps(1)
        );
        assert!(matches!(
            changed(&|wire| wire.apps[0].cgroup = "/a\nb".into()),
            Malformed::Text(_)
        ));
        assert!(matches!(
            changed(&|wire| wire.apps[0].id = "x".repeat(ID_BYTES_MOST + 1)),
            Malformed::Text(_)
        ));
        assert!(matches!(
            changed(&|wire| {
                wire.kind = "perceptible".into();
                wire.detail = "smell".into();
            }),
            Malformed::Detail(_)
        ));
        assert_eq!(
            changed(&|wire| {
                wire.kind = "front".into();
                wire.apps = vec![wire.apps[0].clone(); APPS_MOST + 1];
            }),
            Malformed::Apps(APPS_MOST + 1)
        );
    }

    #[test]
    fn whatever_comes_over_the_wire_is_refused_or_fits() {
        use zbus::zvariant::serialized::{Context, Data};
        use zbus::zvariant::{to_bytes, LE};
        let context = Context::new_dbus(LE, 0);
        for report in [
            Report::Front(vec![an_app(), an_app()]),
            Report::CannotTell("weston".into()),
        ] {
            let good = to_bytes(context, &WireReport::from(&report)).expect("bytes");
            fasttrack_fuzz::mutate(good.bytes(), |bytes| {
                let data = Data::new(bytes.to_vec(), context);
                let Ok((wire, _)) = data.deserialize::<WireReport>() else {
                    return;
                };
                let texts: Vec<usize> = wire.apps.iter().map(|app| app.cgroup.len()).collect();
                if Report::try_from(wire).is_ok() {
                    assert!(texts.len() <= APPS_MOST);
                    assert!(texts.iter().all(|length| *length <= PATH_BYTES_MOST));
                }
            });
        }
    }
}
