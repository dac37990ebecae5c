// SPDX-License-Identifier: GPL-2.0-only
//! X11, under any window manager that follows the EWMH: `_NET_ACTIVE_WINDOW`, and the client's PID by the X-Resource
//! extension, which the server knows. `_NET_WM_PID` is what the client says, in its own PID namespace: it is taken only
//! where the server cannot tell. A client on another machine is nobody here. Dialogs count for their parent.

use crate::env::Env;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use crate::window::{Titled, Window};
use std::collections::BTreeSet;
use x11rb::connection::Connection;
use x11rb::errors::{ConnectError, ReplyError};
use x11rb::protocol::res::{self, ClientIdMask, ClientIdSpec};
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt, EventMask, GetPropertyReply,
};
use x11rb::protocol::Event;
use x11rb::rust_connection::{ConnectionError, RustConnection};

/// Longest chain of parents: windows may name each other in a ring.
const PARENTS_MOST: usize = 8;
/// Most windows that are read of a list, in words of four bytes.
const LIST_MOST: u32 = 4096;
/// Longest text that is read of a property, in words of four bytes.
const TEXT_MOST: u32 = 64;

impl From<ConnectError> for Fault {
    fn from(error: ConnectError) -> Fault {
        Fault(format!("the X server cannot be reached: {error}"))
    }
}

impl From<ConnectionError> for Fault {
    fn from(error: ConnectionError) -> Fault {
        Fault(format!("the X server has closed the connection: {error}"))
    }
}

impl From<ReplyError> for Fault {
    fn from(error: ReplyError) -> Fault {
        match error {
            ReplyError::ConnectionError(error) => error.into(),
            ReplyError::X11Error(error) => {
                Fault(format!("the X server refuses: {:?}", error.error_kind))
            }
        }
    }
}

x11rb::atom_manager! {
    /// Names of properties.
    Names:
    NamesCookie {
        _NET_ACTIVE_WINDOW,
        _NET_CLIENT_LIST,
        _NET_STARTUP_INFO,
        _NET_STARTUP_INFO_BEGIN,
        _NET_SUPPORTING_WM_CHECK,
        _NET_WM_NAME,
        _NET_WM_PID,
    }
}

/// Asks an X server whose a window is.
pub struct Clients {
    connection: RustConnection,
    names: Names,
    root: u32,
    host: String,
}

impl Clients {
    /// Connects to a display.
    pub fn connect(display: &str) -> Result<Clients, Fault> {
        let (connection, screen) = x11rb::connect(Some(display))?;
        let names = Names::new(&connection)?.reply()?;
        let root = connection.setup().roots[screen].root;
        res::query_version(&connection, 1, 2)?.reply()?;
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        Ok(Clients {
            connection,
            names,
            root,
            host,
        })
    }

    /// The app's window behind a window: its PID and its class. A window that has gone meanwhile is nobody's.
    pub fn window(&self, window: u32) -> Result<Window, Fault> {
        gone_is_nothing(self.look(window)).map(Option::unwrap_or_default)
    }

    fn look(&self, window: u32) -> Result<Window, ReplyError> {
        let window = self.parent(window)?;
        let class = self.text(window, AtomEnum::WM_CLASS.into())?;
        let machine = self.text(window, AtomEnum::WM_CLIENT_MACHINE.into())?;
        if is_remote(&machine, &self.host) {
            return Ok(Window::default());
        }
        let pid = match self.client(window)? {
            0 => self.said(window)?,
            pid => pid,
        };
        Ok(Window::of(pid, class_of(&class)))
    }

    /// Up from a dialog to the window that it belongs to.
    fn parent(&self, window: u32) -> Result<u32, ReplyError> {
        let mut at = window;
        for _ in 0..PARENTS_MOST {
            match self.number(at, AtomEnum::WM_TRANSIENT_FOR.into())? {
                // Transient for the root means: for the whole group.
                Some(up) if up != 0 && up != self.root && up != at => at = up,
                _ => break,
            }
        }
        Ok(at)
    }

    /// PID of the client, as the server knows it.
    fn client(&self, window: u32) -> Result<u32, ReplyError> {
        let asked = ClientIdSpec {
            client: window,
            mask: ClientIdMask::LOCAL_CLIENT_PID,
        };
        let reply = res::query_client_ids(&self.connection, &[asked])?.reply()?;
        let pids = reply
            .ids
            .iter()
            .filter(|id| id.spec.mask == ClientIdMask::LOCAL_CLIENT_PID);
        Ok(pids
            .filter_map(|id| id.value.first().copied())
            .next()
            .unwrap_or(0))
    }

    fn said(&self, window: u32) -> Result<u32, ReplyError> {
        Ok(self.number(window, self.names._NET_WM_PID)?.unwrap_or(0))
    }

    fn number(&self, window: u32, name: Atom) -> Result<Option<u32>, ReplyError> {
        let reply = self.property(window, name, 1)?;
        let number = reply.value32().and_then(|mut all| all.next());
        Ok(number)
    }

    fn text(&self, window: u32, name: Atom) -> Result<String, ReplyError> {
        let reply = self.property(window, name, TEXT_MOST)?;
        Ok(String::from_utf8_lossy(&reply.value).into_owned())
    }

    fn property(&self, window: u32, name: Atom, most: u32) -> Result<GetPropertyReply, ReplyError> {
        let any = AtomEnum::ANY;
        self.connection
            .get_property(false, window, name, any, 0, most)?
            .reply()
    }

    fn active(&self) -> Result<u32, Fault> {
        Ok(self
            .number(self.root, self.names._NET_ACTIVE_WINDOW)?
            .unwrap_or(0))
    }

    fn list(&self) -> Result<BTreeSet<u32>, Fault> {
        let reply = self.property(self.root, self.names._NET_CLIENT_LIST, LIST_MOST)?;
        Ok(reply.value32().into_iter().flatten().collect())
    }

    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        let mut all = Vec::new();
        for number in self.list()? {
            if let Some(title) = gone_is_nothing(self.title(number))? {
                all.push((title, self.window(number)?));
            }
        }
        Ok(all)
    }

    /// By the EWMH in UTF-8; old clients have theirs by the ICCCM alone.
    fn title(&self, window: u32) -> Result<String, ReplyError> {
        match self.text(window, self.names._NET_WM_NAME)? {
            none if none.is_empty() => self.text(window, AtomEnum::WM_NAME.into()),
            title => Ok(title),
        }
    }

    fn check(&self) -> Result<u32, Fault> {
        let check = self.number(self.root, self.names._NET_SUPPORTING_WM_CHECK)?;
        Ok(check.unwrap_or(0))
    }

    /// Process of the window manager; zero where nobody knows it.
    pub fn manager(&self) -> Result<u32, Fault> {
        match self.check()? {
            0 => Ok(0),
            window => gone_is_nothing(self.client(window)).map(Option::unwrap_or_default),
        }
    }

    /// Asks for what is said to and of the root window.
    pub fn listen(&self) -> Result<(), Fault> {
        let wanted = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        let asked = self
            .connection
            .change_window_attributes(self.root, &wanted)?;
        Ok(asked.check()?)
    }

    /// The next of that.
    pub fn event(&self) -> Result<Event, Fault> {
        Ok(self.connection.wait_for_event()?)
    }

    /// Whether a message of this type is a piece of an announced launch, and the first.
    pub fn announces(&self, kind: Atom) -> Option<bool> {
        match kind {
            kind if kind == self.names._NET_STARTUP_INFO_BEGIN => Some(true),
            kind if kind == self.names._NET_STARTUP_INFO => Some(false),
            _ => None,
        }
    }
}

/// A window may go while it is asked for.
fn gone_is_nothing<T>(result: Result<T, ReplyError>) -> Result<Option<T>, Fault> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The class, of the instance and the class that `WM_CLASS` holds.
fn class_of(text: &str) -> &str {
    text.split('\0')
        .filter(|word| !word.is_empty())
        .nth(1)
        .unwrap_or_default()
}

/// Whether a client runs on another machine; who says nothing runs here.
fn is_remote(machine: &str, host: &str) -> bool {
    let machine = machine.trim_end_matches('\0');
    let short = |name: &str| {
        name.split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    !machine.is_empty() && short(machine) != "localhost" && short(machine) != short(host)
}

/// The X server of a session that is no Wayland session.
pub fn display(env: &Env) -> Option<String> {
    let wayland = env.var("WAYLAND_DISPLAY").is_some();
    env.var("DISPLAY").filter(|_| !wayland).map(str::to_string)
}

/// An X11 session.
pub struct X11 {
    display: Option<String>,
}

impl X11 {
    /// At `DISPLAY`, unless that is the Xwayland of a Wayland session.
    pub fn new(env: &Env) -> X11 {
        X11 {
            display: display(env),
        }
    }

    fn clients(&self) -> Result<Clients, Fault> {
        let display = self.display.as_deref();
        Clients::connect(display.ok_or_else(|| Fault::new("DISPLAY is not set"))?)
    }
}

impl Source for X11 {
    fn name(&self) -> &'static str {
        "x11"
    }

    fn probe(&self) -> Probe {
        let Some(display) = &self.display else {
            return Probe::No("this is not an X11 session".into());
        };
        match Clients::connect(display).and_then(|clients| clients.check()) {
            Ok(0) => Probe::No("no window manager that follows the EWMH runs".into()),
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        self.clients()?.titled()
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let clients = self.clients()?;
        clients.listen()?;
        let mut known = clients.list()?;
        front(&clients, out)?;
        loop {
            if let Event::PropertyNotify(change) = clients.event()? {
                if change.atom == clients.names._NET_ACTIVE_WINDOW {
                    front(&clients, out)?;
                } else if change.atom == clients.names._NET_CLIENT_LIST {
                    known = opened(&clients, &known, out)?;
                }
            }
        }
    }
}

fn front(clients: &Clients, out: &Out) -> Result<(), Fault> {
    match clients.active()? {
        0 => out.nobody(),
        active => match clients.window(active)? {
            window if window == Window::default() => out.nobody(),
            window => out.front(&[window]),
        },
    }
}

fn opened(clients: &Clients, known: &BTreeSet<u32>, out: &Out) -> Result<BTreeSet<u32>, Fault> {
    let now = clients.list()?;
    for window in now.difference(known) {
        out.window(&clients.window(*window)?)?;
    }
    Ok(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_is_the_second_word() {
        assert_eq!(class_of("xterm\0XTerm\0"), "XTerm");
        assert_eq!(class_of("xterm"), "");
        assert_eq!(class_of(""), "");
    }

    #[test]
    fn another_machine_is_known_by_its_name() {
        assert!(!is_remote("", "here"));
        assert!(!is_remote("Here.example.org\0", "here"));
        assert!(!is_remote("localhost", "here"));
        assert!(is_remote("there", "here"));
    }
}
