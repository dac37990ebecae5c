// SPDX-License-Identifier: GPL-2.0-only
//! A TOML text, read setting by setting: one that is wrong, or that there is not, is an error with its place and spoils
//! no other.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use std::fmt;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;

/// What is wrong, by where it is in the text.
pub(crate) type Wrong = Vec<(Range<usize>, String)>;

/// Any value. Keys and what is in lists know their place; a table that is only part of a key's path has none.
#[derive(Debug)]
enum Value {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Date,
    List(Vec<Spanned<Value>>),
    Table(Vec<(Spanned<String>, Value)>),
}

impl Value {
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Integer(value) => Unexpected::Signed(*value),
            Value::Float(value) => Unexpected::Float(*value),
            Value::Text(value) => Unexpected::Str(value),
            Value::Date => Unexpected::Other("date"),
            Value::List(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        }
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(one) = from.next_element()? {
            list.push(one);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut table = Vec::new();
        loop {
            match from.next_key() {
                Ok(Some(key)) => table.push((key, from.next_value()?)),
                Ok(None) => return Ok(Value::Table(table)),
                // The library tells a date as a table with a key that stands nowhere.
                Err(_) => return Ok(Value::Date),
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
        from.deserialize_any(Any)
    }
}

/// The settings of a file, or of a section of one, that were not read yet.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    left: Vec<(Spanned<String>, Value)>,
    known: Vec<&'static str>,
}

impl Settings {
    /// Those of a text.
    pub(crate) fn parse(text: &str) -> Result<Settings, toml::de::Error> {
        let left = match toml::from_str(text)? {
            Value::Table(all) => all,
            _ => Vec::new(),
        };
        Ok(Settings {
            left,
            known: Vec::new(),
        })
    }

    /// A setting, if READ makes something of it that is EXPECTED.
    fn take<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        wrong: &mut Wrong,
        read: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Option<(Range<usize>, T)> {
        self.known.push(name);
        let at = self.left.iter().position(|(key, _)| key.get_ref() == name);
        let (key, value) = self.left.remove(at?);
        match read(value) {
            Ok(value) => Some((key.span(), value)),
            Err(value) => {
                wrong.push((key.span(), wrong_type(&value, expected)));
                None
            }
        }
    }

    /// A section; an empty one where there is none.
    pub(crate) fn section(&mut self, name: &'static str, wrong: &mut Wrong) -> Settings {
        let section = self.take(name, "a section", wrong, |value| match value {
            Value::Table(all) => Ok(all),
            other => Err(other),
        });
        Settings {
            left: section.map(|(_, all)| all).unwrap_or_default(),
            known: Vec::new(),
        }
    }

    /// Sets what is switched on or off.
    pub(crate) fn switch(&mut self, name: &'static str, setting: &mut bool, wrong: &mut Wrong) {
        let given = self.take(name, "a boolean", wrong, |value| match value {
            Value::Bool(value) => Ok(value),
            other => Err(other),
        });
        *setting = given.map_or(*setting, |(_, value)| value);
    }

    /// Sets a number of this range.
    pub(crate) fn number<T>(
        &mut self,
        name: &'static str,
        setting: &mut T,
        range: RangeInclusive<T>,
        wrong: &mut Wrong,
    ) where
        T: TryFrom<i64> + PartialOrd + fmt::Display,
    {
        let given = self.take(name, "a number", wrong, |value| match value {
            Value::Integer(value) => Ok(value),
            other => Err(other),
        });
        let Some((place, value)) = given else { return };
        match T::try_from(value) {
            Ok(value) if range.contains(&value) => *setting = value,
            _ => {
                let what = format!("{value} is not from {} to {}", range.start(), range.end());
                wrong.push((place, what));
            }
        }
    }

    /// A text that FITS, which is WHAT.
    pub(crate) fn text(
        &mut self,
        name: &'static str,
        fits: impl Fn(&str) -> bool,
        what: &str,
        wrong: &mut Wrong,
    ) -> Option<String> {
        let (place, value) = self.take(name, "a string", wrong, |value| match value {
            Value::Text(value) => Ok(value),
            other => Err(other),
        })?;
        fitting(value, place, &fits, what, wrong)
    }

    /// The texts of a list that FIT, each of which is WHAT.
    pub(crate) fn texts(
        &mut self,
        name: &'static str,
        fits: impl Fn(&str) -> bool,
        what: &str,
        wrong: &mut Wrong,
    ) -> Option<Vec<String>> {
        let (_, list) = self.take(name, "a list", wrong, |value| match value {
            Value::List(list) => Ok(list),
            other => Err(other),
        })?;
        let mut good = Vec::new();
        for one in list {
            let place = one.span();
            match one.into_inner() {
                Value::Text(value) => good.extend(fitting(value, place, &fits, what, wrong)),
                other => wrong.push((place, wrong_type(&other, "a string"))),
            }
        }
        Some(good)
    }

    /// What is left is no setting.
    pub(crate) fn end(self, wrong: &mut Wrong) {
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        for (key, _) in self.left {
            let what = format!(
                "unknown field `{}`, expected one of {}",
                key.get_ref(),
                known.join(", ")
            );
            wrong.push((key.span(), what));
        }
    }
}

fn wrong_type(value: &Value, expected: &str) -> String {
    format!("invalid type: {}, expected {expected}", value.unexpected())
}

fn fitting(
    value: String,
    place: Range<usize>,
    fits: &impl Fn(&str) -> bool,
    what: &str,
    wrong: &mut Wrong,
) -> Option<String> {
    if fits(&value) {
        return Some(value);
    }
    wrong.push((place, format!("{value:?} is not {what}")));
    None
}
