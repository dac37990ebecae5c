// SPDX-License-Identifier: GPL-2.0-only
//! How a record becomes bytes.
//!
//! `id, bytes of the body, body`; the body is a bitmap of the fields that are present and those fields in the schema's
//! order. All numbers are LEB128, signed ones and differences in zigzag. A record's `time` is its difference from the
//! record before it in the block, another time the difference from the record's own. The bitmap's first bit is `time`,
//! which every record has: so that a reader can step over a record that it does not know.

use std::fmt;

/// ns of the boot-time clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// Bytes that are not what the schema says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// Fields of a newer schema, kept as they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// Their bits in the bitmap.
    pub bits: u64,
    /// Their bytes.
    pub bytes: Vec<u8>,
}

/// A record of a newer schema, kept as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Id of the record.
    pub id: u64,
    /// When.
    pub time: Time,
    /// Its other fields.
    pub extra: Extra,
}

/// A field's value as a reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown<'a> {
    /// A count, a size, a time.
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    /// Yes or no.
    Flag(bool),
    /// A name or a path.
    Text(&'a str),
}

/// Bytes that are read from the front.
#[derive(Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// All of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    /// Nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        if count > self.rest.len() {
            return Err(Malformed("a record ends early"));
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    /// What is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// A LEB128 number.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(Malformed("a number has more than 64 bits"));
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("a number has more than 64 bits"))
    }

    /// A number's length as an index.
    fn length(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.number()?).map_err(|_| Malformed("a length is too large"))
    }
}

/// Appends a LEB128 number.
pub fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// `time` as a difference from `base`, which may be later.
pub fn put_time(out: &mut Vec<u8>, time: u64, base: u64) {
    put_number(out, zigzag(time.wrapping_sub(base) as i64));
}

/// The reverse of [`put_time`].
pub fn get_time(input: &mut Input<'_>, base: u64) -> Result<u64, Malformed> {
    Ok(base.wrapping_add(unzigzag(input.number()?) as u64))
}

/// A type of a field. `base` is the record's time.
pub trait Field: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>, base: u64);
    /// Reads it.
    fn get(input: &mut Input<'_>, base: u64) -> Result<Self, Malformed>;
    /// Shows it.
    fn shown(&self) -> Shown<'_>;
}

impl Field for u64 {
    fn put(&self, out: &mut Vec<u8>, _base: u64) {
        put_number(out, *self);
    }
    fn get(input: &mut Input<'_>, _base: u64) -> Result<u64, Malformed> {
        input.number()
    }
    fn shown(&self) -> Shown<'_> {
        Shown::Number(*self)
    }
}

impl Field for i64 {
    fn put(&self, out: &mut Vec<u8>, _base: u64) {
        put_number(out, zigzag(*self));
    }
    fn get(input: &mut Input<'_>, _base: u64) -> Result<i64, Malformed> {
        Ok(unzigzag(input.number()?))
    }
    fn shown(&self) -> Shown<'_> {
        Shown::Signed(*self)
    }
}

impl Field for bool {
    fn put(&self, out: &mut Vec<u8>, _base: u64) {
        out.push(u8::from(*self));
    }
    fn get(input: &mut Input<'_>, _base: u64) -> Result<bool, Malformed> {
        match input.take(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a flag is neither 0 nor 1")),
        }
    }
    fn shown(&self) -> Shown<'_> {
        Shown::Flag(*self)
    }
}

impl Field for String {
    fn put(&self, out: &mut Vec<u8>, _base: u64) {
        put_number(out, self.len() as u64);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(input: &mut Input<'_>, _base: u64) -> Result<String, Malformed> {
        let count = input.length()?;
        let bytes = input.take(count)?.to_vec();
        String::from_utf8(bytes).map_err(|_| Malformed("a text is not UTF-8"))
    }
    fn shown(&self) -> Shown<'_> {
        Shown::Text(self)
    }
}

impl Field for Time {
    fn put(&self, out: &mut Vec<u8>, base: u64) {
        put_time(out, self.0, base);
    }
    fn get(input: &mut Input<'_>, base: u64) -> Result<Time, Malformed> {
        Ok(Time(get_time(input, base)?))
    }
    fn shown(&self) -> Shown<'_> {
        Shown::Number(self.0)
    }
}

/// A body in the making: the bitmap comes first, and is known last.
pub struct Body<'a> {
    fields: Vec<u8>,
    bits: u64,
    place: u32,
    base: u64,
    out: &'a mut Vec<u8>,
    id: u64,
}

impl<'a> Body<'a> {
    /// A record `id` at `time`, after one at `last`, which becomes `time`.
    pub fn new(out: &'a mut Vec<u8>, id: u64, time: Time, last: &mut u64) -> Body<'a> {
        let mut fields = Vec::with_capacity(64);
        put_time(&mut fields, time.0, *last);
        *last = time.0;
        let (bits, place, base) = (1, 1, time.0);
        Body {
            fields,
            bits,
            place,
            base,
            out,
            id,
        }
    }

    /// The next field.
    pub fn field<T: Field>(&mut self, value: Option<&T>) {
        if let Some(value) = value {
            self.bits |= 1 << self.place;
            value.put(&mut self.fields, self.base);
        }
        self.place += 1;
    }

    /// Fields that this program does not know, and the end.
    pub fn end(mut self, extra: &Extra) {
        self.bits |= extra.bits;
        self.fields.extend_from_slice(&extra.bytes);
        let mut bitmap = Vec::with_capacity(4);
        put_number(&mut bitmap, self.bits);
        put_number(self.out, self.id);
        put_number(self.out, (bitmap.len() + self.fields.len()) as u64);
        self.out.extend_from_slice(&bitmap);
        self.out.extend_from_slice(&self.fields);
    }
}

/// A body that is read.
pub struct Fields<'a> {
    input: Input<'a>,
    bits: u64,
    place: u32,
    /// The record's time.
    pub time: Time,
}

/// The id of the next record and its body; `last` becomes its time.
pub fn next<'a>(input: &mut Input<'a>, last: &mut u64) -> Result<(u64, Fields<'a>), Malformed> {
    let id = input.number()?;
    let count = input.length()?;
    let mut input = Input::new(input.take(count)?);
    let bits = input.number()?;
    if bits & 1 == 0 {
        return Err(Malformed("a record has no time"));
    }
    *last = get_time(&mut input, *last)?;
    let (place, time) = (1, Time(*last));
    Ok((
        id,
        Fields {
            input,
            bits,
            place,
            time,
        },
    ))
}

impl Fields<'_> {
    /// The next field, if it is present.
    pub fn field<T: Field>(&mut self) -> Result<Option<T>, Malformed> {
        let there = self.bits >> self.place & 1 == 1;
        self.place += 1;
        match there {
            true => T::get(&mut self.input, self.time.0).map(Some),
            false => Ok(None),
        }
    }

    /// What is left: fields of a newer schema.
    pub fn end(mut self) -> Result<Extra, Malformed> {
        let bits = self.bits >> self.place << self.place;
        let bytes = self.input.rest().to_vec();
        if bits == 0 && !bytes.is_empty() {
            return Err(Malformed("a record has bytes of no field"));
        }
        Ok(Extra { bits, bytes })
    }
}

/// An enum of the schema: a number, and names of those that this program knows.
macro_rules! enums {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal $text:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl $name {
            $($(#[$vdoc])* pub const $variant: $name = $name($number);)*

            /// Its name; `None` for one of a newer schema.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        impl $crate::codec::Field for $name {
            fn put(&self, out: &mut Vec<u8>, base: u64) {
                self.0.put(out, base);
            }
            fn get(input: &mut $crate::codec::Input<'_>, base: u64) -> Result<$name, $crate::codec::Malformed> {
                u64::get(input, base).map($name)
            }
            fn shown(&self) -> $crate::codec::Shown<'_> {
                match self.name() {
                    Some(name) => $crate::codec::Shown::Text(name),
                    None => $crate::codec::Shown::Number(self.0),
                }
            }
        }
    )*};
}

/// The records of the schema.
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident = $id:literal $text:literal {
        $($(#[$fdoc:meta])* $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, Eq)]
            pub struct $name {
                /// When, by the boot-time clock.
                pub time: Time,
                $($(#[$fdoc])* pub $field: Option<$type>,)*
                /// Fields of a newer schema.
                pub extra: $crate::codec::Extra,
            }
        )*

        /// Any record.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Record {
            $($(#[$doc])* $name($name),)*
            /// One of a newer schema.
            Unknown($crate::codec::Unknown),
        }

        impl Record {
            /// The names of all records in the order of their ids, each with its fields in the schema's order.
            pub const TABLES: &[(&str, &[&str])] = &[
                $(($text, &["time", $(stringify!($field),)*]),)*
            ];

            /// Its place in [`Record::TABLES`]; `None` for one of a newer schema.
            pub fn table(&self) -> Option<usize> {
                enum Place { $($name,)* }
                match self {
                    $(Record::$name(_) => Some(Place::$name as usize),)*
                    Record::Unknown(_) => None,
                }
            }

            /// Its name; `None` for one of a newer schema.
            pub fn name(&self) -> Option<&'static str> {
                self.table().map(|place| Record::TABLES[place].0)
            }

            /// When.
            pub fn time(&self) -> Time {
                match self {
                    $(Record::$name(record) => record.time,)*
                    Record::Unknown(record) => record.time,
                }
            }

            /// Gives each field of the schema, in its order, to `show`: its name, and its value if it is present.
            pub fn each_field<'a, E>(
                &'a self,
                mut show: impl FnMut(&'static str, Option<$crate::codec::Shown<'a>>) -> Result<(), E>,
            ) -> Result<(), E> {
                use $crate::codec::Field;
                match self {
                    $(Record::$name(record) => {
                        show("time", Some(record.time.shown()))?;
                        $(show(stringify!($field), record.$field.as_ref().map(Field::shown))?;)*
                    })*
                    Record::Unknown(record) => show("time", Some(record.time.shown()))?,
                }
                Ok(())
            }

            /// Each field that is present, in the schema's order, with its name.
            pub fn fields(&self) -> Vec<(&'static str, $crate::codec::Shown<'_>)> {
                let mut found = Vec::new();
                let Ok(()) = self.each_field(|name, value| {
                    found.extend(value.map(|value| (name, value)));
                    Ok::<(), std::convert::Infallible>(())
                });
                found
            }

            /// Appends it after a record of the time `last`.
            pub(crate) fn put(&self, out: &mut Vec<u8>, last: &mut u64) {
                match self {
                    $(Record::$name(record) => {
                        #[allow(unused_mut)]
                        let mut body = $crate::codec::Body::new(out, $id, record.time, last);
                        $(body.field(record.$field.as_ref());)*
                        body.end(&record.extra);
                    })*
                    Record::Unknown(record) => {
                        $crate::codec::Body::new(out, record.id, record.time, last).end(&record.extra);
                    }
                }
            }

            /// Reads one after a record of the time `last`.
            pub(crate) fn get(
                input: &mut $crate::codec::Input<'_>,
                last: &mut u64,
            ) -> Result<Record, $crate::codec::Malformed> {
                let (id, mut fields) = $crate::codec::next(input, last)?;
                let time = fields.time;
                Ok(match id {
                    $($id => Record::$name($name {
                        time,
                        $($field: fields.field()?,)*
                        extra: fields.end()?,
                    }),)*
                    _ => Record::Unknown($crate::codec::Unknown { id, time, extra: fields.end()? }),
                })
            }
        }

        $(impl From<$name> for Record {
            fn from(record: $name) -> Record {
                Record::$name(record)
            }
        })*
    };
}

pub(crate) use {enums, records};
