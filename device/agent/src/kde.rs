// SPDX-License-Identifier: GPL-2.0-only
//! KDE: a script that runs in KWin and calls back over the session's bus.
//!
//! It calls this connection's unique name, which nobody else can own, and a call is believed only from the connection
//! that owns KWin's name and whose process is KWin. KWin says "none" between any two windows: the daemon waits that out.

use crate::bus;
use crate::env::Env;
use crate::fault::Fault;
use crate::place::Place;
use crate::source::{Out, Probe, Source};
use crate::window::{Titled, Window};
use futures_util::StreamExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc::{channel, Receiver, Sender};
use zbus::fdo::NameOwnerChangedStream;
use zbus::message::Header;
use zbus::Connection;

const SCRIPT: &str = include_str!("kwin.js");
/// Name of the script in KWin: one copy is loaded at most.
const PLUGIN: &str = "fasttrack-agent";
/// Runs once, when somebody asks for titles, which KWin tells no client.
const SCRIPT_OF_TITLES: &str = include_str!("kwin_titles.js");
const PLUGIN_OF_TITLES: &str = "fasttrack-agent-titles";
/// Longest wait for them. Who asks waits a second longer.
const TITLES_MOST: Duration = Duration::from_secs(2);
const KWIN: &str = "org.kde.KWin";
const SCRIPTING: &str = "org.kde.kwin.Scripting";
/// The object that scripts call, and its interface.
const PATH: &str = "/org/fasttrack/KWin";
const INTERFACE: &str = "org.fasttrack.KWin";
/// Longest wait for KWin when a script is over.
const UNLOAD_MOST: Duration = Duration::from_secs(1);
/// Calls that wait; KWin does not wait for an answer.
const CALLS_MOST: usize = 64;

/// A call of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    sender: String,
    front: bool,
    pid: String,
    id: String,
}

impl Call {
    /// The window that it names: none for the compositor's own and for nobody's.
    pub fn window(&self, compositor: u32) -> Option<Window> {
        window(&self.pid, &self.id, compositor)
    }
}

/// A window as scripts name it: none of the compositor's own.
fn window(pid: &str, id: &str, compositor: u32) -> Option<Window> {
    // KWin's own script host writes numbers as it likes: "77" or "77.0".
    let pid = pid.parse::<f64>().ok().filter(|pid| pid.fract() == 0.0);
    let pid = crate::window::pid(pid.unwrap_or(0.0) as i64);
    // KWin 5 has bytes where 6 has text, and an object's name is no id.
    let id = match id {
        id if id.starts_with("[object") || id == "undefined" => "",
        id => id,
    };
    (pid > 0 && pid != compositor).then(|| Window::of(pid, id))
}

struct Service {
    calls: Sender<Call>,
}

impl Service {
    fn take(&self, header: &Header<'_>, front: bool, pid: &str, id: &str) {
        let sender = header.sender().map(ToString::to_string).unwrap_or_default();
        let call = Call {
            sender,
            front,
            pid: pid.into(),
            id: id.into(),
        };
        // Too many at once: the next one says who is in front then.
        let _ = self.calls.try_send(call);
    }
}

#[zbus::interface(name = "org.fasttrack.KWin")]
impl Service {
    async fn front(&self, #[zbus(header)] header: Header<'_>, pid: &str, id: &str) {
        self.take(&header, true, pid, id);
    }

    async fn opened(&self, #[zbus(header)] header: Header<'_>, pid: &str, id: &str) {
        self.take(&header, false, pid, id);
    }
}

/// Takes what KWin's connection says, and nobody else's.
struct Titles {
    owner: String,
    to: Sender<String>,
}

#[zbus::interface(name = "org.fasttrack.KWin")]
impl Titles {
    async fn windows(&self, #[zbus(header)] header: Header<'_>, all: &str) {
        if header.sender().is_some_and(|sender| *sender == *self.owner) {
            // The first list is the answer.
            let _ = self.to.try_send(all.to_string());
        }
    }
}

/// A script, for a connection of this name.
fn script(text: &str, name: &str) -> String {
    text.replace("@NAME@", name)
        .replace("@PATH@", PATH)
        .replace("@INTERFACE@", INTERFACE)
}

/// A session with KWin.
pub struct Kde {
    directory: Option<PathBuf>,
    bus: bool,
    place: Place,
}

impl Kde {
    /// Where a session's bus has KWin.
    pub fn new(env: &Env, place: &Place) -> Kde {
        let bus = env.var("DBUS_SESSION_BUS_ADDRESS").is_some()
            || env.runtime("bus").is_some_and(|path| path.exists());
        Kde {
            directory: env.runtime(""),
            bus,
            place: place.clone(),
        }
    }

    /// A file of the session's own.
    fn file(&self, name: String) -> Result<PathBuf, Fault> {
        let directory = self.directory.as_ref();
        let directory = directory.ok_or_else(|| Fault::new("XDG_RUNTIME_DIR is not set"))?;
        Ok(directory.join(name))
    }
}

impl Source for Kde {
    fn name(&self) -> &'static str {
        "kde"
    }

    fn probe(&self) -> Probe {
        if !self.bus || self.directory.is_none() {
            return Probe::No("this session has no bus".into());
        }
        let owner = bus::runtime().and_then(|runtime| {
            runtime.block_on(async { bus::owner(&Connection::session().await?, KWIN).await })
        });
        match owner {
            Ok(Some(_)) => Probe::Yes,
            Ok(None) => Probe::No("KWin is not on the session's bus".into()),
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let file = self.file(file_name(PLUGIN))?;
        let result = bus::runtime()?.block_on(follow(&file, &self.place, out));
        let _ = std::fs::remove_file(&file);
        result
    }

    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        let file = self.file(file_name(PLUGIN_OF_TITLES))?;
        let result = bus::runtime()?.block_on(async {
            let bus = Connection::session().await?;
            ask(&bus, &self.place, &file).await
        });
        let _ = std::fs::remove_file(&file);
        result
    }
}

/// Where this process has a script in the runtime directory, while KWin has it loaded.
fn file_name(plugin: &str) -> String {
    format!("{plugin}-{}.js", std::process::id())
}

/// The agent ends: a script that it has loaded would run on, and call nobody.
pub fn end(env: &Env) {
    let file = env.runtime(&file_name(PLUGIN)).filter(|file| file.exists());
    let (Some(file), Ok(runtime)) = (file, bus::runtime()) else {
        return;
    };
    let unloaded = async {
        let bus = Connection::session().await?;
        unload(&bus, PLUGIN).await
    };
    // The next agent unloads it, too.
    let _ = runtime.block_on(async { tokio::time::timeout(UNLOAD_MOST, unloaded).await });
    let _ = std::fs::remove_file(file);
}

async fn unload(bus: &Connection, plugin: &str) -> Result<(), Fault> {
    let scripting = bus::proxy(bus, KWIN, "/Scripting", SCRIPTING).await?;
    bus::call_running::<_, bool>(&scripting, "unloadScript", &plugin).await?;
    Ok(())
}

async fn follow(file: &Path, place: &Place, out: &Out) -> Result<(), Fault> {
    let bus = Connection::session().await?;
    let mut owners = bus::owners(&bus, KWIN).await?;
    // It may come later: a session's programs start in any order.
    while bus::owner(&bus, KWIN).await?.is_none() {
        owners
            .next()
            .await
            .ok_or_else(|| Fault::new("the session's bus has closed"))?;
    }
    let (owner, pid) = kwin(&bus, place).await?;
    let (to, from) = channel(CALLS_MOST);
    bus.object_server().at(PATH, Service { calls: to }).await?;
    load(&bus, PLUGIN, SCRIPT, file).await?;
    let calls = obey(from, &owner, pid, out);
    tokio::select! {
        result = calls => {
            // Another source tells who has the focus.
            let _ = tokio::time::timeout(UNLOAD_MOST, unload(&bus, PLUGIN)).await;
            result
        }
        result = replaced(&mut owners, &owner) => result,
    }
}

/// Ends when KWin's name goes to somebody else, or to nobody.
async fn replaced(owners: &mut NameOwnerChangedStream, owner: &str) -> Result<(), Fault> {
    while let Some(change) = owners.next().await {
        if change
            .args()?
            .new_owner()
            .as_ref()
            .map(|name| name.as_str())
            != Some(owner)
        {
            return Err(Fault::new("KWin has ended or restarts"));
        }
    }
    Err(Fault::new("the session's bus has closed"))
}

/// KWin's connection, and its process, which must be called so.
async fn kwin(bus: &Connection, place: &Place) -> Result<(String, u32), Fault> {
    let owner = bus::owner(bus, KWIN)
        .await?
        .ok_or_else(|| Fault::new("KWin is not on the session's bus"))?;
    let pid = bus::process(bus, &owner).await?;
    let program = place.program(pid).unwrap_or_default();
    match program.starts_with("kwin") {
        true => Ok((owner, pid)),
        false => Err(Fault(format!(
            "{KWIN} is owned by {program:?}, process {pid}: not believed"
        ))),
    }
}

/// Has KWin run a script under this name, from this file.
async fn load(bus: &Connection, plugin: &str, text: &str, file: &Path) -> Result<(), Fault> {
    let name = bus
        .unique_name()
        .map(ToString::to_string)
        .unwrap_or_default();
    std::fs::write(file, script(text, &name))?;
    // One of an agent that has died would call nobody.
    unload(bus, plugin).await?;
    let scripting = bus::proxy(bus, KWIN, "/Scripting", SCRIPTING).await?;
    let path = file
        .to_str()
        .ok_or_else(|| Fault::new("XDG_RUNTIME_DIR is no text"))?;
    let number: i32 = scripting.call("loadScript", &(path, plugin)).await?;
    if number < 0 {
        return Err(Fault::new("KWin does not load the script"));
    }
    // Starts those that do not run yet. The object of one script has another path in each version.
    scripting.call_method("start", &()).await?;
    Ok(())
}

async fn obey(mut from: Receiver<Call>, owner: &str, pid: u32, out: &Out) -> Result<(), Fault> {
    while let Some(call) = from.recv().await {
        if call.sender != owner {
            let why = format!("{} is not KWin and calls: not believed", call.sender);
            out.say(crate::event::Event::Fault { source: "kde", why })?;
            continue;
        }
        match (call.window(pid), call.front) {
            (Some(window), true) => out.front(&[window])?,
            (Some(window), false) => out.window(&window)?,
            (None, true) => out.nobody()?,
            (None, false) => {}
        }
    }
    Err(Fault::new("the session's bus has closed"))
}

/// The windows that KWin has, by a connection that nothing else uses and a file for the script.
async fn ask(bus: &Connection, place: &Place, file: &Path) -> Result<Vec<Titled>, Fault> {
    let (owner, pid) = kwin(bus, place).await?;
    let (to, mut from) = channel(1);
    bus.object_server().at(PATH, Titles { owner, to }).await?;
    let asked = async {
        load(bus, PLUGIN_OF_TITLES, SCRIPT_OF_TITLES, file).await?;
        let all = from.recv().await;
        titles(&all.unwrap_or_default(), pid)
    };
    let answer = tokio::time::timeout(TITLES_MOST, asked).await;
    // One that stays is unloaded by who asks next.
    let _ = tokio::time::timeout(UNLOAD_MOST, unload(bus, PLUGIN_OF_TITLES)).await;
    answer.unwrap_or_else(|_| Err(Fault::new("KWin does not say which windows there are")))
}

/// What the script says: of each window its process, its id and its title.
fn titles(text: &str, compositor: u32) -> Result<Vec<Titled>, Fault> {
    let all: Vec<(String, String, String)> = serde_json::from_str(text)?;
    let titled = |(pid, id, title): (String, String, String)| {
        let window = window(&pid, &id, compositor)?;
        Some((title, window))
    };
    Ok(all.into_iter().filter_map(titled).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bus::Bus;
    use crate::testing::{mutate, FakePlace};
    use std::sync::{Arc, Mutex};

    fn call(pid: &str, id: &str) -> Call {
        Call {
            sender: ":1.1".into(),
            front: true,
            pid: pid.into(),
            id: id.into(),
        }
    }

    #[test]
    fn numbers_are_understood_in_any_form() {
        assert_eq!(call("77", "foot").window(5), Some(Window::of(77, "foot")));
        assert_eq!(
            call("77.0", "[object ArrayBuffer]").window(5),
            Some(Window::of(77, ""))
        );
        for pid in ["0", "-1", "5", "undefined", "1e99", "NaN", "7.5", ""] {
            assert_eq!(call(pid, "x").window(5), None, "{pid}");
        }
        mutate(b"4711.0", |bytes| {
            drop(call(&String::from_utf8_lossy(bytes), "").window(1))
        });
    }

    #[test]
    fn the_script_is_filled_in() {
        let text = script(SCRIPT, ":1.42");
        assert!(
            text.contains("callDBus(\":1.42\", \"/org/fasttrack/KWin\", \"org.fasttrack.KWin\"")
        );
        assert_eq!(
            text.matches('@').count(),
            SCRIPT.lines().next().map_or(0, |_| 2)
        );
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_call_of_somebody_else_is_not_believed() {
        let fake = FakePlace::new();
        let app = fake.app("app-foot-7.scope", 7);
        let (to, from) = channel(4);
        let mut forged = call("7", "");
        forged.sender = ":1.66".into();
        to.send(forged).await.expect("room");
        to.send(call("7", "")).await.expect("room");
        drop(to);
        let (events, reports) = std::sync::mpsc::sync_channel(8);
        let out = Out::new("kde", fake.resolver(), events);
        assert!(obey(from, ":1.1", 5, &out).await.is_err());
        assert!(matches!(
            reports.recv(),
            Ok(crate::event::Event::Fault { .. })
        ));
        let front = fasttrack_detector::report::Report::Front(vec![app]);
        assert_eq!(reports.recv(), Ok(crate::event::Event::Focus(front)));
    }

    const LIST: &str = r#"[["77","foot","Letter to Ada"],["78.0","[object ArrayBuffer]","Inbox"],["5","","Panel"]]"#;

    #[test]
    fn windows_have_titles_and_the_compositor_s_own_have_none() {
        let expected = [
            ("Letter to Ada".to_string(), Window::of(77, "foot")),
            ("Inbox".to_string(), Window::of(78, "")),
        ];
        assert_eq!(titles(LIST, 5), Ok(expected.to_vec()));
        assert!(titles("", 5).is_err());
        mutate(LIST.as_bytes(), |bytes| {
            drop(titles(&String::from_utf8_lossy(bytes), 5))
        });
    }

    /// KWin's loader of scripts: it calls as the script would that it was given.
    #[derive(Clone, Default)]
    struct Scripting {
        asked: Arc<Mutex<Vec<String>>>,
        script: Arc<Mutex<String>>,
    }

    impl Scripting {
        fn note(&self, what: String) {
            self.asked.lock().expect("no panic").push(what);
        }
    }

    #[zbus::interface(name = "org.kde.kwin.Scripting")]
    impl Scripting {
        #[zbus(name = "unloadScript")]
        fn unload_script(&self, name: &str) -> bool {
            self.note(format!("unload {name}"));
            true
        }

        #[zbus(name = "loadScript")]
        fn load_script(&self, path: &str, name: &str) -> i32 {
            self.note(format!("load {name}"));
            let text = std::fs::read_to_string(path).expect("the script");
            *self.script.lock().expect("no panic") = text;
            0
        }

        #[zbus(name = "start")]
        async fn start(&self, #[zbus(connection)] bus: &Connection) {
            self.note("start".to_string());
            let text = self.script.lock().expect("no panic").clone();
            let (_, call) = text.split_once("callDBus(").expect("a call");
            let mut words = call.split('"').skip(1).step_by(2);
            let [name, path, interface, method] = [(); 4].map(|()| words.next().expect("a word"));
            let answer = bus.call_method(Some(name), path, Some(interface), method, &LIST);
            answer.await.expect("an answer");
        }
    }

    #[test]
    fn kwin_is_asked_by_a_script_that_is_unloaded_again() {
        let Some(bus) = Bus::start() else {
            return;
        };
        let fake = FakePlace::new();
        fake.process(std::process::id(), "/kwin.scope", 1);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("titles.js");
        bus::runtime().expect("a runtime").block_on(async {
            let scripting = Scripting::default();
            let there = bus.connect().await;
            let served = there
                .object_server()
                .at("/Scripting", scripting.clone())
                .await;
            served.expect("served");
            there.request_name("org.kde.KWin").await.expect("a name");
            let Err(Fault(why)) = ask(&bus.connect().await, &fake.place(), &file).await else {
                panic!("any program is KWin");
            };
            assert!(why.contains("not believed"), "{why}");
            fake.program(std::process::id(), "kwin_wayland");
            let all = ask(&bus.connect().await, &fake.place(), &file)
                .await
                .expect("told");
            assert_eq!(all.len(), 3);
            assert_eq!(
                all[0],
                ("Letter to Ada".to_string(), Window::of(77, "foot"))
            );
            let unload = format!("unload {PLUGIN_OF_TITLES}");
            let asked = scripting.asked.lock().expect("no panic").clone();
            assert_eq!(
                asked,
                [
                    &unload,
                    &format!("load {PLUGIN_OF_TITLES}"),
                    "start",
                    &unload
                ]
            );
        });
    }
}
