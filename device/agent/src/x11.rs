// SPDX-License-Identifier: GPL-2.0-only
//! X11, under any window manager that follows the EWMH: `_NET_ACTIVE_WINDOW`, and the client's PID by the X-Resource
//! extension, which the server knows. `_NET_WM_PID` is what the client says, in its own PID namespace: it is taken only
//! where the server cannot tell. A client on another machine is nobody here. Dialogs count for their parent. A panel or a
//! desktop, by `_NET_WM_WINDOW_TYPE`, is no app: it starts the others, which would all be in its scope.

use crate::env::Env;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use crate::window::{pid, Titled, Window};
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
/// Bytes of an answer before what is longer.
const REPLY: usize = 32;
/// Most types of a window that are read: it names the one that fits best, and then more common ones.
const TYPES_MOST: u32 = 16;
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
        _NET_WM_WINDOW_TYPE,
        _NET_WM_WINDOW_TYPE_DESKTOP,
        _NET_WM_WINDOW_TYPE_DOCK,
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

    /// The app's window behind a window: its PID and its class. A window that has gone meanwhile is nobody's, and so are
    /// panels and desktops.
    pub fn window(&self, window: u32) -> Result<Window, Fault> {
        gone_is_nothing(self.look(window)).map(Option::unwrap_or_default)
    }

    fn look(&self, window: u32) -> Result<Window, ReplyError> {
        let window = self.parent(window)?;
        let class = self.text(window, AtomEnum::WM_CLASS.into())?;
        let machine = self.text(window, AtomEnum::WM_CLIENT_MACHINE.into())?;
        if is_remote(&machine, &self.host) || self.is_shell(window)? {
            return Ok(Window::default());
        }
        let process = match self.client(window)? {
            0 => self.said(window)?,
            process => process,
        };
        Ok(Window::of(process, class_of(&class)))
    }

    /// Whether it is a panel or a desktop.
    fn is_shell(&self, window: u32) -> Result<bool, ReplyError> {
        let types = self.property(window, self.names._NET_WM_WINDOW_TYPE, TYPES_MOST)?;
        let (desktop, dock) = (
            self.names._NET_WM_WINDOW_TYPE_DESKTOP,
            self.names._NET_WM_WINDOW_TYPE_DOCK,
        );
        let mut types = types.value32().into_iter().flatten();
        Ok(types.any(|one| one == desktop || one == dock))
    }

    /// Up from a dialog to the window that it belongs to.
    fn parent(&self, window: u32) -> Result<u32, ReplyError> {
        top(window, self.root, |at| {
            self.number(at, AtomEnum::WM_TRANSIENT_FOR.into())
        })
    }

    /// PID of the client, as the server knows it.
    fn client(&self, window: u32) -> Result<u32, ReplyError> {
        let asked = ClientIdSpec {
            client: window,
            mask: ClientIdMask::LOCAL_CLIENT_PID,
        };
        let reply = res::query_client_ids(&self.connection, &[asked])?.raw_reply()?;
        Ok(pid_of(reply.as_ref()))
    }

    fn said(&self, window: u32) -> Result<u32, ReplyError> {
        let number = self.number(window, self.names._NET_WM_PID)?;
        Ok(pid(number.unwrap_or(0).into()))
    }

    fn number(&self, window: u32, name: Atom) -> Result<Option<u32>, ReplyError> {
        Ok(number_of(&self.property(window, name, 1)?))
    }

    fn text(&self, window: u32, name: Atom) -> Result<String, ReplyError> {
        Ok(text_of(&self.property(window, name, TEXT_MOST)?))
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
        let list = self.names._NET_CLIENT_LIST;
        Ok(list_of(&self.property(self.root, list, LIST_MOST)?))
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

/// Up from a dialog to the window that it belongs to, of the windows that there are: one may outlive its parent.
fn top(
    window: u32,
    root: u32,
    parent: impl Fn(u32) -> Result<Option<u32>, ReplyError>,
) -> Result<u32, ReplyError> {
    let (mut below, mut at) = (window, window);
    for _ in 0..PARENTS_MOST {
        match parent(at) {
            // Transient for the root means: for the whole group.
            Ok(Some(up)) if up != 0 && up != root && up != at => (below, at) = (at, up),
            Ok(_) => break,
            Err(ReplyError::X11Error(_)) if at != window => return Ok(below),
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

/// The first number of a property.
fn number_of(reply: &GetPropertyReply) -> Option<u32> {
    reply.value32()?.next()
}

/// The windows of a list.
fn list_of(reply: &GetPropertyReply) -> BTreeSet<u32> {
    let all = reply.value32().into_iter().flatten();
    all.take(LIST_MOST as usize).collect()
}

fn text_of(reply: &GetPropertyReply) -> String {
    let most = reply.value.len().min(4 * TEXT_MOST as usize);
    String::from_utf8_lossy(&reply.value[..most]).into_owned()
}

/// The client's PID in an answer of the X-Resource extension: after its head each id is the window and a mask, a number
/// of bytes, and these. The library makes room for as many as the head says before it looks for them.
fn pid_of(reply: &[u8]) -> u32 {
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(word))
    };
    let mut rest = reply.get(REPLY..).unwrap_or_default();
    while let (Some(mask), Some(length)) = (word(rest, 4), word(rest, 8)) {
        let value = &rest[12..];
        if mask == u32::from(ClientIdMask::LOCAL_CLIENT_PID) && length >= 4 {
            return pid(word(value, 0).unwrap_or(0).into());
        }
        rest = value.get(length as usize..).unwrap_or_default();
    }
    0
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

/// Whether an X server answers there.
pub fn is_there(display: &str) -> bool {
    x11rb::connect(Some(display)).is_ok()
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
    use crate::testing::mutate;
    use x11rb::protocol::ErrorKind;
    use x11rb::x11_utils::{TryParse, X11Error};

    fn words(all: &[u32]) -> Vec<u8> {
        all.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// An answer with these bytes and what its head has in its last six words.
    fn answer(second: u8, head: [u32; 6], rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![1, second, 7, 0];
        bytes.extend(words(&[rest.len() as u32 / 4]));
        bytes.extend(words(&head));
        bytes.extend(rest);
        bytes
    }

    fn property(format: u8, value: &[u8]) -> Vec<u8> {
        let number = value.len() * 8 / usize::from(format);
        answer(format, [6, 0, number as u32, 0, 0, 0], value)
    }

    fn read(bytes: &[u8]) -> Option<GetPropertyReply> {
        Some(GetPropertyReply::try_parse(bytes).ok()?.0)
    }

    #[test]
    fn properties_are_read_and_spoilt_ones_do_no_harm() {
        let active = property(32, &words(&[0x40_0001]));
        let list = property(32, &words(&[5, 3, 5]));
        let class = property(8, b"xterm\0XTerm\0pad");
        assert_eq!(number_of(&read(&active).expect("a reply")), Some(0x40_0001));
        let windows = list_of(&read(&list).expect("a reply"));
        assert_eq!(windows, BTreeSet::from([3, 5]));
        let text = text_of(&read(&class).expect("a reply"));
        assert_eq!(class_of(&text), "XTerm");
        assert_eq!(number_of(&read(&class).expect("a reply")), None);
        let long = property(8, &b"x".repeat(9 * TEXT_MOST as usize * 4));
        assert_eq!(text_of(&read(&long).expect("a reply")).len(), 256);
        let all: Vec<u32> = (0..2 * LIST_MOST).collect();
        let long = property(32, &words(&all));
        let list_most = LIST_MOST as usize;
        assert_eq!(list_of(&read(&long).expect("a reply")).len(), list_most);
        for good in [active, list, class] {
            mutate(&good, |bytes| {
                let Some(reply) = read(bytes) else { return };
                let number = number_of(&reply);
                assert!(number.is_none() || reply.format == 32);
                assert!(list_of(&reply).len() <= list_most.min(bytes.len() / 4));
                let text = text_of(&reply);
                // A byte that is no text becomes a character of three.
                assert!(text.len() <= 3 * 256 && class_of(&text).len() <= text.len());
                is_remote(&text, "here");
            });
        }
    }

    #[test]
    fn a_client_s_pid_is_found_and_a_spoilt_answer_has_none_or_another() {
        let ids = words(&[9, 1, 0, 9, 2, 4, 4711]);
        let good = answer(0, [2, 0, 0, 0, 0, 0], &ids);
        assert_eq!(pid_of(&good), 4711);
        let library = res::QueryClientIdsReply::try_parse(&good);
        assert_eq!(library.expect("a reply").0.ids[1].value, [4711]);
        let negative = words(&[9, 2, 4, u32::MAX]);
        assert_eq!(pid_of(&answer(0, [1, 0, 0, 0, 0, 0], &negative)), 0);
        let endless = words(&[9, 1, u32::MAX]);
        assert_eq!(pid_of(&answer(0, [u32::MAX, 0, 0, 0, 0, 0], &endless)), 0);
        mutate(&good, |bytes| assert!(pid_of(bytes) <= i32::MAX as u32));
    }

    #[test]
    fn a_dialog_whose_parent_has_gone_stands_for_itself() {
        let gone = || {
            Err(ReplyError::X11Error(X11Error {
                error_kind: ErrorKind::Window,
                error_code: 3,
                sequence: 1,
                bad_value: 9,
                minor_opcode: 0,
                major_opcode: 20,
                extension_name: None,
                request_name: None,
            }))
        };
        let parents = |window| match window {
            1 => Ok(None),
            2 => Ok(Some(1)),
            3 => Ok(Some(2)),
            4 => Ok(Some(9)),
            5 => Ok(Some(4)),
            6 => Ok(Some(7)),
            7 => Ok(Some(6)),
            8 => Ok(Some(100)),
            _ => gone(),
        };
        let of = |window| top(window, 100, parents).ok();
        assert_eq!([1, 2, 3].map(of), [Some(1); 3]);
        assert_eq!([4, 5].map(of), [Some(4); 2]);
        assert!([6, 7].map(of).iter().all(Option::is_some));
        assert_eq!((of(8), of(9)), (Some(8), None));
    }

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
