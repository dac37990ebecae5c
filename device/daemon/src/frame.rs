// SPDX-License-Identifier: GPL-2.0-only
//! The head of a D-Bus message, as far as it has to be known to refuse one: a pure function of bytes.
//!
//! The D-Bus specification, "Message format": 16 bytes, then an array of header fields, padding to 8 bytes, the body.

/// Bytes before the header fields.
const FIXED: usize = 16;
/// The field with the unique name of who has sent it; the bus writes it, nobody else can.
const SENDER: u8 = 7;
/// The field with the number of descriptors that come with it; the bus compares it with those that there are.
const UNIX_FDS: u8 = 9;
/// Of a call that wants no answer.
const NO_REPLY: u8 = 1;
const METHOD_CALL: u8 = 1;

/// What is known of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Bytes of the whole message.
    pub length: usize,
    /// Whether it calls a method.
    pub is_call: bool,
    /// Whether the caller waits for an answer.
    pub wants_reply: bool,
    /// Who has sent it; empty where it does not say so, or more of it has to be read for that.
    pub sender: &'a str,
    /// Whether descriptors come with it, or its fields do not tell that.
    pub has_descriptors: bool,
}

/// How much of a message is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head<'a> {
    /// Too little for anything.
    Short,
    /// Too little for its header fields; so many bytes are the message, and whether it calls a method.
    Begun(usize, bool),
    /// All of its header.
    Whole(Frame<'a>),
    /// It is no message.
    Bad,
}

/// Looks at the first bytes of a message.
pub fn head(bytes: &[u8]) -> Head<'_> {
    let little = match bytes.first() {
        Some(b'l') => true,
        Some(b'B') => false,
        Some(_) => return Head::Bad,
        None => return Head::Short,
    };
    let number = |at: usize| number(bytes, at, little);
    let (Some(body), Some(fields)) = (number(4), number(12)) else {
        return Head::Short;
    };
    let header = FIXED + fields as usize;
    let length = header.next_multiple_of(8) + body as usize;
    let Some(fields) = bytes.get(FIXED..header) else {
        return Head::Begun(length, bytes[1] == METHOD_CALL);
    };
    let (sender, descriptors) = walk(fields, little).unwrap_or(("", 1));
    Head::Whole(Frame {
        length,
        is_call: bytes[1] == METHOD_CALL,
        wants_reply: bytes[2] & NO_REPLY == 0,
        sender,
        has_descriptors: descriptors > 0,
    })
}

fn number(bytes: &[u8], at: usize, little: bool) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(match little {
        true => u32::from_le_bytes(word),
        false => u32::from_be_bytes(word),
    })
}

/// Walks the fields, each a code, the signature of one basic type, and a value: sender and number of descriptors.
fn walk(fields: &[u8], little: bool) -> Option<(&str, u32)> {
    let (mut sender, mut descriptors) = ("", 0);
    let mut at = 0;
    while at < fields.len() {
        let &[code, 1, kind, 0] = fields.get(at..at + 4)? else {
            return None;
        };
        at += 4;
        let begin = match kind {
            b's' | b'o' => at + 4,
            b'g' => at + 1,
            b'u' => at,
            _ => return None,
        };
        let end = match kind {
            b'g' => begin + usize::from(*fields.get(at)?) + 1,
            b'u' => begin + 4,
            _ => begin
                .checked_add(number(fields, at, little)? as usize)?
                .checked_add(1)?,
        };
        match (code, kind) {
            (SENDER, b's') => sender = std::str::from_utf8(fields.get(begin..end - 1)?).ok()?,
            (UNIX_FDS, b'u') => descriptors = number(fields, begin, little)?,
            _ => {}
        }
        at = end.checked_next_multiple_of(8)?;
    }
    Some((sender, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zbus::message::Flags;
    use zbus::zvariant::Endian;
    use zbus::Message;

    fn call(endian: Endian) -> Message {
        let call = Message::method_call("/org/fasttrack1", "Report").expect("a path");
        let call = call
            .endian(endian)
            .destination("org.fasttrack1")
            .expect("a name");
        let call = call.interface("org.fasttrack1.Manager").expect("a name");
        let call = call.sender(":1.42").expect("a name");
        call.build(&("a", 7_u32, vec!["b"])).expect("a message")
    }

    #[test]
    fn a_message_is_known_by_its_head_in_both_orders() {
        for endian in [Endian::Little, Endian::Big] {
            let message = call(endian);
            let bytes = message.data().bytes();
            let Head::Whole(frame) = head(bytes) else {
                panic!("{:?}", head(bytes));
            };
            assert_eq!(frame.length, bytes.len());
            assert_eq!(
                (frame.is_call, frame.wants_reply, frame.sender),
                (true, true, ":1.42")
            );
            assert!(!frame.has_descriptors);
            // As soon as its header is there.
            let header = bytes.len() - message.body().len();
            let frames = (0..bytes.len()).map(|to| head(&bytes[..to]));
            for (to, head) in frames.enumerate() {
                match to {
                    0..16 => assert_eq!(head, Head::Short),
                    to if to >= header => assert_eq!(head, Head::Whole(frame)),
                    _ => assert!(matches!(head, Head::Begun(..) | Head::Whole(_)), "{to}"),
                }
            }
        }
    }

    #[test]
    fn who_wants_no_answer_and_what_is_no_call_are_told_apart() {
        let message = Message::method_call("/a", "B").expect("a path");
        let message = message.with_flags(Flags::NoReplyExpected).expect("a flag");
        let message = message.build(&()).expect("a message");
        let Head::Whole(frame) = head(message.data().bytes()) else {
            panic!("no head");
        };
        assert!(frame.is_call && !frame.wants_reply && frame.sender.is_empty());
        let message = Message::signal("/a", "a.B", "C").expect("names");
        let message = message.build(&()).expect("a message");
        assert!(matches!(
            head(message.data().bytes()),
            Head::Whole(Frame { is_call: false, .. })
        ));
        assert_eq!(head(b"OK 1234\r\n"), Head::Bad);
    }

    #[test]
    fn descriptors_are_seen_wherever_the_field_is_and_taken_for_granted_where_no_field_can_be_read()
    {
        let has = |fields: &[&[u8]]| {
            let fields = fields.concat();
            let mut bytes = vec![b'l', METHOD_CALL, 0, 1];
            bytes.extend([0_u32, 1].map(u32::to_le_bytes).concat());
            bytes.extend(u32::try_from(fields.len()).expect("short").to_le_bytes());
            bytes.extend(fields);
            match head(&bytes) {
                Head::Whole(frame) => (frame.sender == ":1.7", frame.has_descriptors),
                other => panic!("{other:?}"),
            }
        };
        let sender = b"\x07\x01s\0\x04\0\0\0:1.7\0\0\0\0";
        let (three, none) = (b"\x09\x01u\0\x03\0\0\0", b"\x09\x01u\0\0\0\0\0");
        let (wrong_type, list) = (b"\x09\x01s\0\0\0\0\0", b"\x63\x02as\0\0\0\0");
        assert_eq!(has(&[sender]), (true, false));
        assert_eq!(has(&[none, sender]), (true, false));
        assert_eq!(has(&[sender, three]), (true, true));
        assert_eq!(has(&[three, sender]), (true, true));
        assert_eq!(has(&[list, sender]), (false, true));
        assert_eq!(has(&[sender, &wrong_type[..6]]), (false, true));
    }
}
