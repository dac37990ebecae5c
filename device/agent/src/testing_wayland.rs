// SPDX-License-Identifier: GPL-2.0-only
//! A compositor that plays a script, by the wire format of Wayland. It understands no request: numbers of a client's objects
//! are known beforehand. The display is 1, the registry 2, the answer to the first question 3, and what the client binds
//! or makes is 4 and more, in its order.

use crate::env::Env;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use tempfile::TempDir;

/// A text as an argument.
pub fn text(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32 + 1).to_ne_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An event of an object.
pub fn event(object: u32, opcode: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = object.to_ne_bytes().to_vec();
    bytes.extend(((8 + body.len() as u32) << 16 | opcode).to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// What a compositor has, and the end of that.
pub fn globals(all: &[(&str, u32)]) -> Vec<Vec<u8>> {
    let mut script: Vec<Vec<u8>> = Vec::new();
    for (name, (interface, version)) in all.iter().enumerate() {
        let mut global = (name as u32).to_ne_bytes().to_vec();
        global.extend(text(interface));
        global.extend(version.to_ne_bytes());
        script.push(event(2, 0, &global));
    }
    script.push(event(3, 0, &[0; 4]));
    script
}

/// Bytes of the first two requests of a client: for the registry, and whether all of it was told.
const FIRST: usize = 24;

/// Says to everybody who connects what it has, and the rest when it is asked for more; whether the stream ends then is
/// said with it. Whoever reads the end together with what was said before it tells its user of the end alone.
pub fn play(
    globals: Vec<Vec<u8>>,
    rest: impl Fn() -> (Vec<u8>, bool) + Send + 'static,
) -> (Env, TempDir) {
    let runtime = tempfile::tempdir().expect("a directory");
    let path = runtime.path().join("wayland-9");
    let listener = UnixListener::bind(&path).expect("a socket");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            // Who only looks may go at any time.
            let _ = stream.write_all(&globals.concat());
            let (mut room, mut read) = ([0; 4096], 0);
            while read <= FIRST {
                match stream.read(&mut room) {
                    Ok(more) if more > 0 => read += more,
                    _ => break,
                }
            }
            let (rest, ends) = rest();
            let _ = stream.write_all(&rest);
            if ends {
                let _ = stream.shutdown(Shutdown::Write);
            }
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let env = Env::of([("WAYLAND_DISPLAY", path.to_str().expect("a path"))]);
    (env, runtime)
}
